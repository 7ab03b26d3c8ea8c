"""The server's page in a headless Chromium; PACELINE_PAGE_URL names a running server to look at instead of one's own."""
import unittest

from answers import sent
from fresh_page_case import URL, FreshPageCase
from page_case import ANSWER_S, PHONE, WATCH, PageCase
from server import Server


class PageTest(FreshPageCase):
    def test_an_answer_streams(self):
        self.set("temperature", "0")  # drawn ones may be over after a few tokens
        self.browser.run(WATCH)
        self.send("It was a dark and stormy night.")
        self.until_answered()
        lengths = self.watched()["lengths"]
        self.assertGreater(len(lengths), 1, "the text came at once")
        self.assertEqual(lengths, sorted(lengths))
        self.assertEqual(self.browser.text(".message"), "It was a dark and stormy night.")
        for part in ["token", "first after", "tokens/s", "prompt"]:
            self.assertIn(part, self.browser.text(".meta"))
        self.assert_quiet_console()

    def test_an_answer_can_be_stopped(self):
        self.browser.click("#tab-completion")
        self.set("max_tokens", "800")
        self.set("n", "4")
        for attempt in range(5):  # a model may end by itself before it is stopped
            self.set("seed", str(attempt))
            self.send("The ship had been at sea for forty days when")
            self.browser.until("return document.querySelector('.exchange:last-child .text')?.textContent.length > 60")
            self.browser.press("Escape")
            self.until_answered()
            if "Stopped" in self.browser.text(".exchange:last-child .ending"):
                break
        else:
            self.fail("no answer was stopped")
        before = self.browser.text("#completion")
        self.until_idle()
        self.assertEqual(self.browser.text("#completion"), before)
        self.assertEqual(self.browser.count("#send:not([hidden])"), 1)
        self.assert_quiet_console()

    def test_eight_streams_at_once_and_their_blocks(self):
        self.until_idle()
        self.browser.run(WATCH)
        self.browser.click("#streams-demo")
        # Streams may end before the test reads the page, so the page itself records what it showed.
        self.browser.until("return Math.max(0, ...window.__watched.rows) === 8")
        self.browser.until("return document.querySelector('#streams-start').checkVisibility()", within=ANSWER_S)
        self.browser.until("return window.__watched.blocks.at(-1) === 0 && window.__watched.pixels.at(-1) === 0")
        seen = self.watched()
        self.assertEqual(max(seen["rows"]), 8)
        self.assertGreaterEqual(max(seen["blocks"]), 8)
        self.assertGreater(max(seen["pixels"]), 8 * 20, "the map shows no sequence's colour")
        self.assertEqual(self.browser.count("#streams-grid li"), 8)
        states = self.browser.run("return [...document.querySelectorAll('.stream-head')].map((node) => node.textContent)")
        for state in states:
            self.assertRegex(state, r"[1-9]\d* tokens?, ended")
        self.assert_quiet_console()

    def test_log_probabilities_by_mouse(self):
        self.set("logprobs", True)
        self.set("temperature", "0")  # the token drawn is the likeliest, so it is among the alternatives
        self.send("The captain said")
        self.until_answered()
        self.browser.point_at(".tokens .token:nth-child(2)")
        self.browser.until("return document.querySelector('#token-card').checkVisibility()")
        self.assertIn("log-probability", self.browser.text("#token-card"))
        self.assertGreaterEqual(self.browser.count("#token-card tr"), 5)
        self.assertEqual(self.browser.count("#token-card .is-chosen"), 1)
        self.assert_quiet_console()

    def test_keyboard_alone(self):
        self.set("temperature", "0")  # an answer of several tokens
        self.tab_to("summary")
        self.browser.press("Enter")
        self.tab_to("[name=logprobs]")
        self.browser.press(" ")
        self.tab_to("#prompt")
        self.browser.write("Who is there?")
        self.browser.press("Enter")
        self.until_answered()
        self.assertEqual(self.focused(), "prompt")
        self.tab_to("#streams-demo")
        self.until_idle()  # no more steps come
        self.tab_to("#batch")
        self.browser.press("ArrowLeft")
        self.assertIn("Step", self.browser.text("#batch-caption"))
        self.tab_to("#pools canvas")
        self.browser.press("ArrowRight", "ArrowRight")
        self.assertIn("Block 1", self.browser.text("#blocks-caption"))
        self.browser.press("?")
        self.assertTrue(self.browser.run("return document.querySelector('#help-dialog').open"))
        self.browser.press("Escape")
        self.assertFalse(self.browser.run("return document.querySelector('#help-dialog').open"))
        self.browser.press("1")
        self.assertEqual(self.focused(), "tab-chat")
        self.tab_to(".token")
        self.browser.press("ArrowRight")
        self.browser.until("return document.activeElement === document.querySelectorAll('.token')[1]")
        self.browser.until("return document.querySelector('#token-card').checkVisibility()")
        self.browser.run("document.dispatchEvent(new Event('scroll'));"
                         "document.body.dispatchEvent(new PointerEvent('pointerover', {bubbles: true}))")
        self.assertTrue(self.browser.run("return document.querySelector('#token-card').checkVisibility()"),
                        "the card went though its token has the focus")
        self.tab_to(".actions .regenerate")
        self.browser.press("Enter")
        self.until_answered()
        self.assertEqual(self.browser.count(".exchange"), 1)
        self.browser.press("1", "ArrowRight")
        self.assertTrue(self.browser.run("return document.querySelector('#completion').checkVisibility()"))
        self.assert_quiet_console()

    def test_a_prompt_can_be_edited(self):
        self.set("max_tokens", "8")
        for prompt in ["Good morning.", "Good evening."]:
            self.send(prompt)
            self.until_answered()
        self.browser.click(".exchange:first-child .edit")
        self.browser.write(" Sir.")
        self.browser.press("Enter")
        self.until_answered()
        self.assertEqual(self.browser.count(".exchange"), 1, "what followed the edited message is in its other version")
        self.assertEqual(self.browser.text(".message"), "Good morning. Sir.")
        self.assertEqual(self.browser.text(".versions span"), "2 of 2")
        self.assert_quiet_console()

    def test_an_error_is_said_in_words(self):
        self.set("stop", "x" * 300)
        self.send("Go on.")
        self.until_answered()
        self.assertIn("The server refused this request", self.browser.text(".error"))
        self.assertIn("field: stop", self.browser.text(".error"))
        self.set("stop", "")
        self.browser.click(".error button")
        self.until_answered()
        self.assertEqual(self.browser.count(".error"), 0)
        self.assert_quiet_console(but_for=["400"])

    def test_figures_are_shown_when_asked_for(self):
        self.set("max_tokens", "8")
        self.send("Good morning.")
        self.until_answered()
        shown = "return document.querySelector('.meta').checkVisibility()"
        self.assertFalse(self.browser.run(shown))
        self.browser.click(".figures")
        self.assertTrue(self.browser.run(shown))
        self.assertIn("token", self.browser.text(".meta"))
        self.reload()
        self.send("Good evening.")
        self.until_answered()
        self.browser.until(shown, within=5)
        self.browser.click(".exchange:last-child .figures")
        self.assertFalse(self.browser.run(shown))
        self.assert_quiet_console()

    def test_the_engine_can_be_hidden(self):
        shown = "return document.querySelector('#engine').checkVisibility()"
        self.assertTrue(self.browser.run(shown))
        wide = self.browser.run("return document.querySelector('#playground').clientWidth")
        self.browser.click("#toggle-engine")
        self.assertFalse(self.browser.run(shown))
        self.assertGreater(self.browser.run("return document.querySelector('#playground').clientWidth"), wide + 300)
        self.reload()
        self.assertFalse(self.browser.run(shown), "the choice is kept")
        self.browser.run("document.activeElement.blur()")
        self.browser.press("e")
        self.assertTrue(self.browser.run(shown))
        self.assertEqual(self.focused(), "batch")
        self.browser.set_size(*PHONE)
        self.browser.click(".views [data-view=playground]")
        self.assertFalse(self.browser.run("return document.querySelector('#toggle-engine').checkVisibility()"))
        self.assert_quiet_console()

    def test_an_answer_has_room(self):
        self.ask("Hello", "Hello yourself.")
        self.assertEqual(sent(self.browser)[-1]["max_completion_tokens"], 1024)

    def test_rates_are_possible(self):
        # 200 pieces that come at once tell no rate.
        self.ask("Hello", "x" * 200, piece=1)
        self.assertRegex(self.browser.text(".meta"), "200 tokens")
        self.assertNotIn("tokens/s", self.browser.text(".meta"))
        self.ask("Again", "x" * 200, piece=1, timings={"predicted_n": 199, "predicted_ms": 3980})
        self.assertIn("50 tokens/s", self.browser.text(".exchange:last-child .meta"))
        self.assert_quiet_console()

    def test_light_and_dark(self):
        background = "return getComputedStyle(document.body).backgroundColor"
        light = self.browser.run(background)
        self.browser.prefer(color_scheme="dark")
        dark = self.browser.run(background)
        self.assertNotEqual(light, dark)
        self.browser.click("#theme")
        self.assertEqual(self.browser.run(background), light)
        self.open(self.url)
        self.assertEqual(self.browser.run(background), light, "the choice is kept")
        self.browser.click("#theme")
        self.assertEqual(self.browser.run("return localStorage.length"), 0, "the system's own choice isn't")
        self.assert_quiet_console()

    def test_a_phones_width(self):
        self.browser.set_size(*PHONE)
        self.open(self.url)
        self.assert_no_sideways_scrolling("empty chat")
        self.set("logprobs", True)
        self.send("Hello there, " + "what a very long word: " + "x" * 60)
        self.until_answered()
        self.assert_no_sideways_scrolling("chat")
        self.browser.run("document.querySelector('#settings').open = true")
        self.assert_no_sideways_scrolling("settings")
        self.browser.run("document.querySelector('#settings').open = false; scrollTo(0, 0)")
        self.browser.click("#tab-streams")
        self.browser.click("#streams-start")
        self.browser.until("return document.querySelectorAll('.stream-text')[7]?.textContent.length > 60")
        self.assert_no_sideways_scrolling("eight streams")
        self.browser.click(".views [data-view=engine]")
        self.browser.until("return document.querySelector('#batch').checkVisibility()")
        self.assert_no_sideways_scrolling("engine")
        self.assert_quiet_console()


@unittest.skipIf(URL, "needs servers of its own")
class OwnServerTest(PageCase):
    """Tests that need a server with other options, or one that stops."""

    def start(self, *options, port=0):
        server = Server(*options, port=port)
        self.addCleanup(server.stop)
        return server

    def dialog_says(self, text):
        return self.browser.until("return document.querySelector('#key-dialog').open &&"
                                  "document.querySelector('#key-text').textContent.includes(arguments[0])", text)

    def test_the_page_asks_for_the_key(self):
        server = self.start("--api-key", "correct-horse")
        self.load(server.url)
        self.dialog_says("asks for an API key")
        self.browser.write("wrong")
        self.browser.press("Enter")
        self.dialog_says("refused this key")
        self.browser.press("Escape")
        self.browser.until("return document.querySelector('#connection').textContent === 'Locked'")
        self.browser.click("#banner button")
        self.dialog_says("refused this key")
        self.browser.write("correct-horse")
        self.browser.press("Enter")
        self.until_connected()
        self.set("max_tokens", "8")
        self.send("Hello.")
        self.until_answered()
        self.assertIn("first after", self.browser.text(".meta"))
        self.assertEqual(self.browser.run("return sessionStorage.getItem('paceline.key')"), "correct-horse")
        self.assertNotIn("correct-horse", self.browser.run("return JSON.stringify(localStorage)"))
        self.assert_quiet_console(but_for=["401"])

    def test_a_full_context_offers_a_new_chat(self):
        server = self.start("--max-model-len", "64")
        self.open(server.url)
        for attempt in range(8):  # a model may end by itself before its context is full
            self.set("seed", str(attempt))
            self.browser.click("#new-chat")
            self.send("It was a dark and stormy night. " * 4)
            self.until_answered()
            if "the model's context is full" in self.browser.text("#chat .exchanges:not([hidden]) .ending"):
                break
        else:
            self.fail("no answer filled the context")
        self.assertEqual(self.browser.text("#chat .exchanges:not([hidden]) .ending button"), "New chat")
        self.send("And then? " * 20)
        self.until_answered()
        self.assertIn("The prompt is too long for the model", self.browser.text(".error"))
        self.assertEqual(self.browser.text(".error button"), "New chat")
        self.browser.click(".error button")
        self.assertEqual(self.browser.count("#chat .exchanges:not([hidden]) .exchange"), 0)
        self.assertEqual(self.focused(), "prompt")
        self.assert_quiet_console(but_for=["400"])

    def test_a_server_that_goes_away_and_comes_back(self):
        first = self.start()
        self.open(first.url)
        first.stop()
        self.browser.until("return document.querySelector('#banner').checkVisibility() &&"
                           "document.querySelector('#banner').textContent.includes(\"doesn't answer\")")
        self.send("Is anybody there?")
        self.until_answered()
        self.assertIn("The connection is lost", self.browser.text(".error"))
        self.start(port=first.port)
        self.until_connected()
        self.assertFalse(self.browser.run("return document.querySelector('#banner').checkVisibility()"))
        self.browser.click(".error button")
        self.until_answered()
        self.assertIn("first after", self.browser.text(".meta"))
        self.assert_quiet_console(but_for=["ERR_CONNECTION_REFUSED", "ERR_CONNECTION_RESET", "ERR_EMPTY_RESPONSE",
                                           "ERR_INCOMPLETE_CHUNKED_ENCODING"])


if __name__ == "__main__":
    unittest.main()
