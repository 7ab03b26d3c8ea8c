"""The base of the page's tests: a browser, and the page as a visitor sees it."""
import unittest

from webdriver import Browser, missing_programs

PHONE = (360, 740)
DESKTOP = (1400, 900)
MOST_TABS = 60
ANSWER_S = 120

# Samples what the page shows until __watched.done: length of the text, blocks in use, coloured pixels, rows of the
# table.
WATCH = """
const seen = window.__watched = {lengths: [], blocks: [], rows: [], pixels: [], done: false};
const add = (list, value) => { if (list.at(-1) !== value) list.push(value); };
const coloured = (canvas) => {
  if (!canvas?.width || !canvas.height) return 0;
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", {willReadFrequently: true});
  copy.drawImage(canvas, 0, 0);
  const {data} = copy.getImageData(0, 0, canvas.width, canvas.height);
  let number = 0;
  for (let i = 0; i < data.length; i += 4) {
    if (Math.max(data[i], data[i + 1], data[i + 2]) - Math.min(data[i], data[i + 1], data[i + 2]) > 60) number++;
  }
  return number;
};
const measure = () => {
  const answers = document.querySelectorAll("[role=tabpanel]:not([hidden]) .text, #streams-grid .stream-text");
  add(seen.lengths, [...answers].reduce((sum, node) => sum + node.textContent.length, 0));
  const inUse = /; ([\\d,]+) in use/.exec(document.querySelector("#pools .summary")?.textContent)?.[1];
  add(seen.blocks, Number(inUse?.replaceAll(",", "") ?? 0));
  add(seen.rows, document.querySelectorAll("#sequences tr").length);
};
// Every change that the page makes, however short it stays; colours are looked at now and then.
new MutationObserver(measure).observe(document.body, {subtree: true, childList: true, characterData: true});
const look = () => {
  measure();
  add(seen.pixels, coloured(document.querySelector("#pools canvas")));
  if (!seen.done) setTimeout(look, 30);
};
look();
"""


@unittest.skipIf(missing_programs(),
                 f"not installed: {', '.join(missing_programs())} (Debian: chromium, chromium-driver)")
class PageCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        self.browser.set_size(*DESKTOP)
        self.browser.prefer(color_scheme="light")
        self.browser.open("about:blank")  # the page of the test before still asks its server
        self.browser.console()

    def load(self, url):
        self.browser.open(url + "/")
        self.browser.until("return document.querySelector('#theme').textContent !== ''")  # the script has run

    def open(self, url):
        self.load(url)
        self.until_connected()

    def until_connected(self):
        self.browser.until("return document.body.dataset.connection === 'live' && document.querySelector('#model').value")

    def set(self, name, value):
        self.browser.run("const field = document.querySelector('#composer').elements[arguments[0]];"
                         "if (field.type === 'checkbox') field.checked = arguments[1]; else field.value = arguments[1];"
                         "field.dispatchEvent(new Event('input', {bubbles: true}));", name, value)

    def send(self, text):
        self.browser.click("#prompt")
        self.browser.write(text)
        self.browser.press("Enter")

    def until_answered(self):
        self.browser.until("return document.querySelector('.answer') && !document.querySelector('[aria-busy]')",
                           within=ANSWER_S)

    def until_idle(self):
        """Waits until the engine holds no blocks."""
        self.browser.until("return document.querySelectorAll('#sequences tr').length === 0 &&"
                           "document.querySelector('#pools .summary').textContent.includes('; 0 in use')")

    def watched(self):
        return self.browser.run("window.__watched.done = true; return window.__watched;")

    def focused(self):
        return self.browser.run("return document.activeElement.id")

    def assert_quiet_console(self, but_for=()):
        """Nothing was written to the console, except the browser's own messages about answers with these states."""
        loud = [entry["message"] for entry in self.browser.console()
                if entry["source"] != "network" or not any(part in entry["message"] for part in but_for)]
        self.assertEqual(loud, [])

    def assert_no_sideways_scrolling(self, where):
        wide = self.browser.run("return document.scrollingElement.scrollWidth")
        self.assertLessEqual(wide, PHONE[0], where)

    def tab_to(self, css):
        """Presses Tab until the focus is on such an element; each stop on the way must show it."""
        for _ in range(MOST_TABS):
            self.browser.press("Tab")
            shown, arrived, name = self.browser.run(
                "const node = document.activeElement;"
                "const look = (one) => { const style = getComputedStyle(one);"
                "  return style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0; };"
                "return [node === document.body || [node, ...node.children].some(look), node.matches(arguments[0]),"
                "  node.outerHTML.slice(0, 120)]", css)
            self.assertTrue(shown, f"the focus can't be seen on {name}")
            if arrived:
                return
        self.fail(f"Tab doesn't lead to {css}")
