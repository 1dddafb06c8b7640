// The button that copies the lines of a page.
document.getElementById("copy").addEventListener("click", async () => {
  const lines = document.getElementById("yaml"), copied = document.getElementById("copied");
  try {
    await navigator.clipboard.writeText(lines.textContent);
    copied.textContent = "Copied.";
  } catch {
    getSelection().selectAllChildren(lines);
    copied.textContent = "Selected. Copy with Ctrl+C.";
  }
});
