"""The page with a server that drafts: accepted text in another shade, drafted rows of the steps, the switch."""
import unittest

from fresh_page_case import URL
from page_case import PageCase
from server import Server

PROMPT = "The old house by the river, the old house by the sea, the old house by the river, the old house by"

# Keeps the texts that were shaded, and the highest number of them at once.
WATCH = """
window.__shaded = {texts: [], most: 0};
const drafted = CSS.highlights.get("drafted");
const add = drafted.add.bind(drafted);
drafted.add = (range) => {
  window.__shaded.texts.push(range.toString());
  add(range);
  window.__shaded.most = Math.max(window.__shaded.most, drafted.size);
};
"""


@unittest.skipIf(URL, "needs a server of its own")
class DraftsTest(PageCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server = Server("--speculative-method", "ngram", "--prompt-lookup-min", "1", "--no-adaptive-drafts")
        cls.addClassCleanup(cls.server.stop)

    def setUp(self):
        super().setUp()
        self.begin()

    def begin(self):
        self.load(self.server.url)
        self.browser.run("localStorage.clear(); sessionStorage.clear();")
        self.open(self.server.url)
        self.set("temperature", "0")
        self.set("max_tokens", "120")

    def answer(self, prompt=PROMPT):
        self.browser.run(WATCH)
        self.send(prompt)
        self.until_answered()
        return self.browser.run("return window.__shaded")

    def check_shaded(self, logprobs):
        for _ in range(4):  # a busy machine may draw an answer only when all of it is there
            self.begin()
            self.set("max_tokens", "600")
            self.set("logprobs", logprobs)
            shaded = self.answer()
            if shaded["most"] > 1:
                break
        self.assertGreater(shaded["most"], 1)
        self.assertTrue(all(shaded["texts"]))
        text = self.browser.run("return [...document.querySelectorAll('.answer .text')].at(-1).textContent")
        self.assertIn(shaded["texts"][0], text)
        self.assertEqual(self.browser.run("return CSS.highlights.get('drafted').size"), 0)  # it has ended
        self.assert_quiet_console()

    def test_accepted_text_is_shaded_while_it_comes(self):
        self.check_shaded(False)

    def test_accepted_text_with_logprobs_is_shaded_too(self):
        self.check_shaded(True)

    def test_the_steps_have_their_drafts(self):
        self.answer()
        self.browser.until("return !document.querySelector('#draft-key').hidden")
        self.browser.until("return document.querySelector('#stats').textContent.includes('accepted')")
        self.browser.run("document.querySelector('#batch').focus()")
        for _ in range(64):
            self.browser.press("ArrowLeft")
            if "drafted" in self.browser.text("#batch-caption"):
                break
        self.assertRegex(self.browser.text("#batch-caption"), r"1 decoding, \d+ drafted rows?, \d+ accepted; ")
        self.assert_quiet_console()

    def test_the_switch(self):
        self.browser.until("return !document.querySelector('#speculation-field').hidden")
        self.answer()
        drafted = ("return fetch('/v1/requests').then((answer) => answer.json())"
                   ".then(({engine}) => engine.drafted_tokens)")
        before = self.browser.run(drafted)
        self.assertGreater(before, 0)
        self.set("speculation", False)
        self.assertIn("no drafts", self.browser.text("#settings-brief"))
        self.assertEqual(self.answer()["texts"], [])
        self.assertEqual(self.browser.run(drafted), before)
        self.assert_quiet_console()


class PlainServerTest(PageCase):
    def test_a_server_without_a_drafter_offers_no_switch(self):
        server = Server()
        self.addCleanup(server.stop)
        self.open(server.url)
        self.assertTrue(self.browser.run("return document.querySelector('#speculation-field').hidden"))
        self.assertTrue(self.browser.run("return document.querySelector('#draft-key').hidden"))


if __name__ == "__main__":
    unittest.main()
