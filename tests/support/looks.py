"""Whether a report or a drawing can be read: on a phone, on a desk, by a projector, in light and in dark."""

# Widths and colours in which reports are looked at.
LOOKS = ((390, "light"), (390, "dark"), (1024, "dark"), (1280, "light"), (1920, "light"))
TALLEST = 6000  # pixels of a picture that is kept

# Texts of drawings that are cut off, that cover each other, or that are turned.
DRAWN_BADLY = """
const found = [];
function frameOf(svg) { // of a drawing in a drawing: its place, since its box is that of what is drawn
  if (!svg.parentElement?.closest("svg")) return svg.getBoundingClientRect();
  const { a, d, e, f } = svg.parentElement.getScreenCTM(), at = (name) => svg[name].baseVal.value;
  const [left, top] = [e + a * at("x"), f + d * at("y")];
  return { left, top, right: left + a * at("width"), bottom: top + d * at("height") };
}
for (const svg of document.querySelectorAll("svg")) {
  if (!svg.checkVisibility()) continue;
  const texts = [...svg.querySelectorAll("text")].filter((t) => t.textContent.trim());
  const boxes = texts.map((t) => t.getBoundingClientRect());
  const nested = Boolean(svg.parentElement?.closest("svg")), frame = frameOf(svg);
  texts.forEach((text, i) => {
    const a = boxes[i], words = text.textContent.trim();
    if (a.left < frame.left - 1 || a.right > frame.right + 1 || a.top < frame.top - 1 || a.bottom > frame.bottom + 1)
      found.push(`cut off: ${words}`);
    if (nested) return;
    if (Math.abs(text.getScreenCTM().b) > 0.01) found.push(`turned: ${words}`);
    for (let j = 0; j < i; j++) {
      const b = boxes[j];
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (wide > 1 && high > 3) found.push(`${words} covers ${texts[j].textContent.trim()}`);
    }
  });
}
return found;
"""

# Texts that are wider than the box they stand in.
SPILLS = """
return [...document.querySelectorAll("h1, p, li, td, th, dd, dt, pre, summary, figcaption, button")]
  .filter((e) => e.checkVisibility() && e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0)
  .map((e) => `${e.tagName}: ${e.textContent.trim().slice(0, 60)}`);
"""

# Texts of the page that cover each other. What a table that can be scrolled hides is not there.
COVERS = """
const lines = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const node = walker.currentNode, element = node.parentElement;
  if (!node.textContent.trim() || element.closest("svg, script, style") || !element.checkVisibility()) continue;
  const range = document.createRange(), pane = element.closest(".scroll")?.getBoundingClientRect();
  range.selectNodeContents(node);
  for (const { left, right, top, bottom } of range.getClientRects()) {
    const end = pane ? Math.min(right, pane.right) : right;
    if (end > left) lines.push({ node, left, right: end, top, bottom });
  }
}
lines.sort((a, b) => a.top - b.top);
const found = [];
lines.forEach((a, i) => {
  for (let j = i + 1; j < lines.length && lines[j].top < a.bottom - 3; j++) {
    const b = lines[j];
    if (b.node !== a.node && Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1)
      found.push(`${b.node.textContent.trim().slice(0, 40)} covers ${a.node.textContent.trim().slice(0, 40)}`);
  }
});
return found;
"""


def check_looks(browser, path, scheme, width, name=None):
    """Opens the file, keeps a picture of it, and checks all of it, what is folded as well."""
    browser.set_scheme(scheme)
    browser.size(width, phone=width < 600)
    browser.complaints()
    browser.driver.get(path.as_uri())
    tall = browser.driver.execute_script("return document.documentElement.scrollHeight")
    browser.shot(f"{name or path.stem}-{width}-{scheme}", min(tall, TALLEST))
    browser.size(width, phone=width < 600)
    browser.driver.execute_script("for (const fold of document.querySelectorAll('details')) fold.open = true")
    assert browser.overflows() <= 0
    assert browser.low_contrast(drawings=True) == []
    assert browser.too_small() == []
    assert browser.unnamed() == []
    assert browser.driver.execute_script(SPILLS) == []
    assert browser.driver.execute_script(COVERS) == []
    assert browser.driver.execute_script(DRAWN_BADLY) == []
    assert browser.driver.execute_script("return performance.getEntriesByType('resource').map((e) => e.name)") == []
    assert browser.complaints() == []
