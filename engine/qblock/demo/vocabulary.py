"""The values of the demo's columns, how they group, and how often they occur together. All figures are invented."""

from __future__ import annotations

import numpy as np

from qblock.blocks import Floats

YOUNGEST, OLDEST = 16, 99
AGES = np.arange(YOUNGEST, OLDEST + 1)
AGE_RANGES = (5, 10, 20)
LIFE_STAGES = (20, 25, 35, 50, 65)
"""The ages at which the next stage of life begins; marriage, education, origin and pay differ between the six."""

GENDERS = ("woman", "man")

MARITAL_STATUS = {
    "never married": "single",
    "living together": "partnered",
    "registered partnership": "partnered",
    "married": "partnered",
    "separated": "formerly partnered",
    "divorced": "formerly partnered",
    "widowed": "formerly partnered",
}
MARITAL_SHARES = np.array(
    [  # one row per stage of life
        [97, 2.5, 0.1, 0.3, 0.05, 0.02, 0.01],
        [82, 14, 1.0, 2.5, 0.3, 0.15, 0.05],
        [44, 24, 2.5, 26, 2.0, 1.4, 0.1],
        [18, 13, 2.0, 54, 5.0, 7.5, 0.5],
        [11, 6, 1.2, 60, 5.0, 14.0, 2.8],
        [8, 2, 0.4, 55, 3.0, 10.0, 21.6],
    ]
)
WIDOWED_BY_GENDER = (1.4, 0.6)

EDUCATION = {
    "no schooling": ("compulsory", "without a degree"),
    "primary": ("compulsory", "without a degree"),
    "lower secondary": ("compulsory", "without a degree"),
    "upper secondary": ("secondary", "without a degree"),
    "craft certificate": ("secondary", "without a degree"),
    "technical diploma": ("college", "with a degree"),
    "associate degree": ("college", "with a degree"),
    "bachelor": ("university", "with a degree"),
    "master": ("university", "with a degree"),
    "doctorate": ("university", "with a degree"),
}
BANDS = ("compulsory", "secondary", "college", "university")
EDUCATION_SHARES = np.array(
    [  # one row per stage of life
        [0.2, 3.0, 48, 43, 4.0, 1.5, 0.3, 0.0, 0.0, 0.0],
        [0.2, 1.0, 8.0, 44, 13, 11, 6.0, 15, 1.8, 0.0],
        [0.3, 1.0, 5, 19, 12, 13, 8.0, 28, 13, 0.7],
        [0.5, 2.0, 8, 20, 14, 13, 8.0, 22, 11, 1.5],
        [0.8, 5.0, 16, 24, 15, 11, 6.0, 14, 7.0, 1.2],
        [2.0, 18, 24, 21, 13, 7.0, 3.0, 8.0, 3.4, 0.6],
    ]
)

HOME = "Ireland"
COUNTRIES = {  # name: (region, continent, share of those born abroad, as weight)
    HOME: ("British Isles", "Europe", 0.0),
    "United Kingdom": ("British Isles", "Europe", 150),
    "France": ("Western Europe", "Europe", 24),
    "Germany": ("Western Europe", "Europe", 27),
    "Netherlands": ("Western Europe", "Europe", 11),
    "Spain": ("Southern Europe", "Europe", 38),
    "Portugal": ("Southern Europe", "Europe", 19),
    "Italy": ("Southern Europe", "Europe", 36),
    "Greece": ("Southern Europe", "Europe", 8),
    "Poland": ("Eastern Europe", "Europe", 172),
    "Romania": ("Eastern Europe", "Europe", 92),
    "Lithuania": ("Eastern Europe", "Europe", 55),
    "Latvia": ("Eastern Europe", "Europe", 34),
    "Ukraine": ("Eastern Europe", "Europe", 48),
    "Brazil": ("South America", "Americas", 66),
    "Argentina": ("South America", "Americas", 9),
    "Chile": ("South America", "Americas", 4),
    "United States": ("North America", "Americas", 46),
    "Canada": ("North America", "Americas", 14),
    "Mexico": ("North America", "Americas", 7),
    "India": ("South Asia", "Asia", 84),
    "Pakistan": ("South Asia", "Asia", 30),
    "Bangladesh": ("South Asia", "Asia", 9),
    "China": ("East Asia", "Asia", 26),
    "Philippines": ("East Asia", "Asia", 34),
    "Vietnam": ("East Asia", "Asia", 6),
    "Japan": ("East Asia", "Asia", 3),
    "Nigeria": ("West Africa", "Africa", 36),
    "Ghana": ("West Africa", "Africa", 7),
    "South Africa": ("Southern Africa", "Africa", 21),
    "Zimbabwe": ("Southern Africa", "Africa", 10),
    "Egypt": ("North Africa", "Africa", 8),
    "Morocco": ("North Africa", "Africa", 6),
    "Australia": ("Australasia", "Oceania", 17),
    "New Zealand": ("Australasia", "Oceania", 6),
}
BORN_ABROAD = (0.06, 0.09, 0.15, 0.13, 0.07, 0.04)
"""The share of people born abroad, per stage of life."""

SECTORS = {
    "small company": "private sector",
    "large company": "private sector",
    "local authority": "public sector",
    "national authority": "public sector",
    "own business with staff": "own business",
    "own business alone": "own business",
    "family business": "own business",
    "charity": "charities",
}
WITHIN_SECTOR = (0.55, 0.45, 0.6, 0.4, 0.3, 0.62, 0.08, 1.0)

OCCUPATIONS = {  # name: (group, kind)
    "teaching": ("professions", "desk and classroom"),
    "health care": ("professions", "desk and classroom"),
    "engineering": ("professions", "desk and classroom"),
    "software": ("professions", "desk and classroom"),
    "law and accounting": ("business", "desk and classroom"),
    "management": ("business", "desk and classroom"),
    "administration": ("business", "desk and classroom"),
    "sales": ("services", "hands-on"),
    "hospitality": ("services", "hands-on"),
    "personal care": ("services", "hands-on"),
    "public safety": ("services", "hands-on"),
    "cleaning": ("manual work", "hands-on"),
    "construction": ("manual work", "hands-on"),
    "manufacturing": ("manual work", "hands-on"),
    "transport": ("manual work", "hands-on"),
    "farming": ("manual work", "hands-on"),
}
OCCUPATION_BY_BAND = np.array(
    [  # one row per occupation: weight in each education band
        [0.1, 0.6, 3.0, 16],
        [0.4, 1.5, 8.0, 12],
        [0.3, 2.0, 8.0, 9.0],
        [0.2, 1.5, 6.0, 10],
        [0.1, 1.5, 6.0, 11],
        [2.0, 5.0, 9.0, 14],
        [4.0, 14, 15, 9.0],
        [10, 15, 11, 6.0],
        [12, 9.0, 5.0, 2.0],
        [8.0, 8.0, 7.0, 2.0],
        [2.0, 4.0, 5.0, 2.5],
        [14, 5.0, 1.5, 0.5],
        [14, 11, 6.0, 1.5],
        [16, 12, 7.0, 2.5],
        [11, 8.0, 3.0, 1.0],
        [7.0, 4.0, 2.0, 1.0],
    ]
)
OCCUPATION_OF_WOMEN = np.array(
    [0.72, 0.76, 0.22, 0.27, 0.52, 0.38, 0.75, 0.56, 0.57, 0.84, 0.3, 0.72, 0.05, 0.3, 0.14, 0.2]
)
"""How much an occupation is held by women, if there were as many women as men."""

SECTOR_BY_OCCUPATION = np.array(
    [  # one row per occupation: private, public, own business, charity
        [0.12, 0.76, 0.04, 0.08],
        [0.28, 0.55, 0.06, 0.11],
        [0.72, 0.16, 0.11, 0.01],
        [0.80, 0.07, 0.12, 0.01],
        [0.60, 0.16, 0.22, 0.02],
        [0.62, 0.12, 0.22, 0.04],
        [0.55, 0.33, 0.06, 0.06],
        [0.82, 0.01, 0.15, 0.02],
        [0.78, 0.03, 0.18, 0.01],
        [0.42, 0.20, 0.20, 0.18],
        [0.24, 0.73, 0.02, 0.01],
        [0.72, 0.14, 0.11, 0.03],
        [0.60, 0.06, 0.34, 0.00],
        [0.93, 0.01, 0.06, 0.00],
        [0.68, 0.14, 0.18, 0.00],
        [0.18, 0.03, 0.78, 0.01],
    ]
)

SALARIES = ("under 20k", "20k to 35k", "35k to 50k", "50k to 80k", "80k and over")
SALARY_STEPS = (-1.6, 0.0, 1.3, 2.9)
"""Where one salary class ends and the next begins, on the scale of the scores below (logistic, spread 1)."""
PAY_OF_OCCUPATION = np.array([0.7, 0.5, 1.1, 1.4, 1.2, 1.6, 0, -0.4, -1.2, -0.9, 0.5, -1.5, 0.1, 0, -0.2, -0.8])
PAY_OF_BAND = np.array([-0.7, -0.2, 0.3, 1.0])
PAY_OF_STAGE = np.array([-2.6, -1.4, -0.1, 0.6, 0.6, -0.5])
PAY_OF_GENDER = np.array([-0.3, 0.2])

HOURS = np.arange(5, 65, 5)


def age_weights() -> Floats:
    """float64[84]: the weight of each age in AGES; few are very old."""
    return np.interp(AGES, [16, 25, 38, 55, 65, 78, 88, 99], [0.3, 1.0, 1.3, 1.1, 0.75, 0.35, 0.09, 0.004])
