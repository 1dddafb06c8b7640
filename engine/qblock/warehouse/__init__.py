"""Warehouses: one page of facts per engine behind one protocol."""

from __future__ import annotations

from qblock.warehouse.engines import open_warehouse, warehouse_of
from qblock.warehouse.protocol import Column, Session, TableName, Warehouse

__all__ = ["Column", "Session", "TableName", "Warehouse", "open_warehouse", "warehouse_of"]
