"""The chats stored in the browser: listed, opened, renamed, deleted, and what happens when storage is full."""
import json
import unittest

from answers import answer_with, sent
from fresh_page_case import FreshPageCase
from page_case import PHONE

TITLES = "return [...document.querySelectorAll('.chat-title')].map((node) => node.textContent)"
MESSAGES = ("return [...document.querySelectorAll('#chat .exchanges:not([hidden]) :is(.message, .text)')]"
            ".map((node) => node.textContent)")
KEPT = ("return Object.keys(localStorage).filter((name) => name.startsWith('paceline.chat.'))"
        ".map((name) => JSON.parse(localStorage[name]))")


class ChatsTest(FreshPageCase):
    def titles(self):
        return self.browser.run(TITLES)

    def messages(self):
        return self.browser.run(MESSAGES)

    def two_chats(self):
        self.ask("First question", "First **answer**.")
        self.browser.click("#new-chat")
        self.ask("Second question", "Second answer.")

    def item(self, title, part=".chat-title"):
        """A selector of a part of the list's item with this title."""
        index = self.titles().index(title) + 1
        return f"#chat-list li:nth-child({index}) {part}"

    def open_chat(self, title):
        self.browser.click(self.item(title))

    def test_chats_are_listed_and_opened_again(self):
        self.assertTrue(self.browser.run("return document.querySelector('#chats-empty').checkVisibility()"))
        self.two_chats()
        self.assertEqual(self.titles(), ["Second question", "First question"])
        self.open_chat("First question")
        self.assertEqual(self.messages(), ["First question", "First answer."])
        self.reload()
        self.assertEqual(self.titles(), ["Second question", "First question"])
        self.assertEqual(self.messages(), ["First question", "First answer."], "a reload shows the same chat")
        self.assertEqual(self.browser.count(".answer strong"), 1)
        self.ask("And then?", "Then this.")
        self.assertEqual(sent(self.browser)[-1]["messages"], [
            {"role": "user", "content": "First question"}, {"role": "assistant", "content": "First **answer**."},
            {"role": "user", "content": "And then?"}])
        self.assertEqual(self.titles(), ["First question", "Second question"], "the last changed comes first")
        self.assert_quiet_console()

    def test_a_chat_goes_on_while_another_is_shown(self):
        answer_with(self.browser, "slow " * 40, piece=5, pause_ms=20)
        self.send("Take your time")
        self.browser.until("return document.querySelector('.text')?.textContent.includes('slow')")
        self.browser.click("#new-chat")
        self.assertEqual(self.messages(), [])
        self.assertEqual(self.browser.count("#chat-list .dot"), 1)
        self.ask("Quick one", "Quick answer.")
        self.assertEqual(self.messages(), ["Quick one", "Quick answer."])
        self.open_chat("Take your time")
        self.browser.until("return document.querySelectorAll('#chat-list .dot').length === 0")
        self.assertEqual(self.messages(), ["Take your time", ("slow " * 40).strip()])
        self.assert_quiet_console()

    def test_an_edited_message_goes_on_from_there(self):
        for prompt in ["One", "Two", "Three"]:
            self.ask(prompt, f"Answer to {prompt}.")
        self.browser.click(".exchange:nth-child(2) .edit")
        self.browser.write(" and a half")
        self.browser.press("Enter")
        self.until_answered()
        self.assertEqual(self.messages()[::2], ["One", "Two and a half"])
        self.assertEqual([message["content"] for message in sent(self.browser)[-1]["messages"]],
                         ["One", "Answer to One.", "Two and a half"])
        self.browser.click("#prompt")
        self.browser.press("ArrowUp")
        self.assertEqual(self.browser.run("return document.activeElement.value"), "Two and a half")
        self.browser.press("Escape")
        self.assertEqual(self.browser.run("return document.activeElement.className"), "edit")
        [chat] = self.browser.run(KEPT)
        self.assertEqual([exchange["prompt"] for exchange in chat["exchanges"]], ["One", "Two and a half"])
        self.assert_quiet_console()

    def shown_version(self, exchange):
        return self.browser.text(f"#chat .exchanges:not([hidden]) .exchange:nth-child({exchange}) .versions:not([hidden]) span")

    def switch(self, exchange, name):
        self.browser.click(f"#chat .exchanges:not([hidden]) .exchange:nth-child({exchange}) [aria-label='{name} version']")

    def test_earlier_versions_of_an_answer_are_kept(self):
        self.ask("One", "First answer.")
        self.assertEqual(self.shown_version(1), "")
        for number, answer in ((2, "Second answer."), (3, "Third answer.")):
            answer_with(self.browser, answer)
            self.browser.click(".regenerate")
            self.browser.until("return document.querySelector('.text')?.textContent === arguments[0]", answer)
            self.until_answered()
            self.assertEqual(self.shown_version(1), f"{number} of {number}")
        self.switch(1, "Earlier")
        self.assertEqual(self.messages(), ["One", "Second answer."])
        self.reload()
        self.assertEqual((self.messages(), self.shown_version(1)), (["One", "Second answer."], "2 of 3"))
        self.ask("Two", "Goes on.")
        self.assertEqual([message["content"] for message in sent(self.browser)[-1]["messages"]],
                         ["One", "Second answer.", "Two"])
        self.switch(1, "Later")
        self.assertEqual(self.messages(), ["One", "Third answer."])
        self.assertEqual(self.browser.count(".exchange:first-child [aria-label='Later version'][disabled]"), 1)
        self.switch(1, "Earlier")
        self.assertEqual(self.messages(), ["One", "Second answer.", "Two", "Goes on."])
        self.assert_quiet_console()

    def test_an_edited_message_keeps_the_old_branch(self):
        for prompt in ["One", "Two", "Three"]:
            self.ask(prompt, f"Answer to {prompt}.")
        before = self.messages()
        self.browser.click(".exchange:nth-child(2) .edit")
        self.browser.write(" changed")
        self.browser.press("Enter")
        self.until_answered()
        self.assertEqual((self.messages()[::2], self.shown_version(2)), (["One", "Two changed"], "2 of 2"))
        # A fork inside of the old branch, and then one before both.
        self.switch(2, "Earlier")
        self.assertEqual(self.messages(), before)
        self.browser.click(".exchange:nth-child(3) .regenerate")
        self.until_answered()
        self.browser.click(".exchange:nth-child(1) .regenerate")
        self.until_answered()
        self.assertEqual(self.messages()[::2], ["One"])
        self.reload()
        self.switch(1, "Earlier")
        self.assertEqual(self.messages()[::2], ["One", "Two", "Three"])
        self.assertEqual([self.shown_version(exchange) for exchange in (1, 2, 3)], ["1 of 2", "1 of 2", "2 of 2"])
        self.switch(2, "Later")
        self.assertEqual(self.messages()[::2], ["One", "Two changed"])
        [chat] = self.browser.run(KEPT)
        self.assertEqual([exchange["prompt"] for exchange in chat["exchanges"]], ["One", "Two changed"])
        self.assert_quiet_console()

    def test_regenerating_stops_the_answer_that_runs(self):
        self.ask("One", "Answer.")
        answer_with(self.browser, "slow " * 200, piece=5, pause_ms=20)
        self.send("Two")
        self.browser.until("return document.querySelectorAll('.text')[1]?.textContent.includes('slow')")
        answer_with(self.browser, "Another answer.")
        self.browser.click(".exchange:first-child .regenerate")
        self.browser.until("return document.querySelector('.text')?.textContent === 'Another answer.'")
        self.until_answered()
        self.assertEqual(self.messages(), ["One", "Another answer."])
        self.assert_quiet_console()

    def test_chats_are_renamed_and_deleted_by_keyboard(self):
        self.two_chats()
        self.browser.run("document.activeElement.blur()")
        self.browser.press("l")
        self.assertEqual(self.browser.run("return document.activeElement.textContent"), "Second question")
        self.browser.press("ArrowDown", "F2")
        self.browser.write("My <b>name</b>")
        self.browser.press("Enter")
        self.assertEqual(self.titles(), ["Second question", "My <b>name</b>"])
        self.assertEqual(self.browser.run("return document.activeElement.textContent"), "My <b>name</b>")
        self.browser.press("F2")
        self.browser.write("Not this")
        self.browser.press("Escape")
        self.assertEqual(self.titles(), ["Second question", "My <b>name</b>"])
        self.reload()
        self.assertEqual(self.titles(), ["Second question", "My <b>name</b>"])
        self.browser.run("document.activeElement.blur()")
        self.browser.press("l", "Delete")
        self.assertEqual(self.titles(), ["My <b>name</b>"])
        self.assertEqual(self.messages(), [], "a deleted chat isn't shown any more")
        self.assertEqual(self.browser.run("return document.activeElement.textContent"), "My <b>name</b>")
        self.browser.click("#chats-note button")
        self.assertEqual(self.titles(), ["Second question", "My <b>name</b>"])
        self.open_chat("Second question")
        self.assertEqual(self.messages(), ["Second question", "Second answer."])
        self.assert_quiet_console()

    def test_chats_are_renamed_and_deleted_by_mouse(self):
        self.two_chats()
        self.browser.click(self.item("Second question", ".chat-tools button:first-child"))
        self.browser.write("Renamed")
        self.browser.click("#prompt")
        self.assertEqual(self.titles(), ["Renamed", "First question"])
        self.browser.click(self.item("Renamed", ".chat-tools button:last-child"))
        self.assertEqual(self.titles(), ["First question"])
        self.assertEqual(len(self.browser.run(KEPT)), 1)
        self.assert_quiet_console()

    def test_a_full_storage_is_said_and_ends(self):
        self.ask("Kept", "Kept answer.")
        self.browser.click("#new-chat")
        # Chromium limits a site to 5 Mi characters of names and values.
        self.browser.run("let size = 1 << 22; while (size >= 1) {"
                         "  try { localStorage.filler = (localStorage.filler ?? '') + 'x'.repeat(size); }"
                         "  catch { size >>= 1; } }")
        self.ask("There is no room for this", "Still answered.")
        self.assertIn("storage is full", self.browser.text("#chats-warning"))
        self.assertEqual(self.titles(), ["There is no room for this", "Kept"])
        self.assertEqual(self.messages(), ["There is no room for this", "Still answered."])
        self.browser.run("localStorage.removeItem('filler')")
        self.browser.click(self.item("Kept"))
        self.browser.click(self.item("Kept", ".chat-tools button:last-child"))
        self.assertEqual(self.browser.text("#chats-warning"), "")
        [chat] = self.browser.run(KEPT)
        self.assertEqual(chat["exchanges"][0]["answer"], "Still answered.")
        self.assert_quiet_console()

    def test_a_browser_that_keeps_nothing(self):
        self.browser.run("Storage.prototype.setItem = () => { throw new DOMException('no', 'SecurityError'); }")
        self.ask("Hello", "Hello yourself.")
        self.assertIn("keeps no data", self.browser.text("#chats-warning"))
        self.assertEqual(self.messages(), ["Hello", "Hello yourself."])
        self.assert_quiet_console()

    def test_anything_in_the_storage_is_read(self):
        for number, text in enumerate(["", "{", "null", "[]", "{}", '{"exchanges": 3}', '{"exchanges": [null, 1, {}]}',
                                       json.dumps({"title": {"a": 1}, "changedAt": "x", "exchanges": [
                                           {"prompt": "<img src=x onerror=alert(1)>", "answer": 7, "ending": "odd",
                                            "others": [3, [], [{"prompt": "Other", "others": "x"}]], "place": -9}]})]):
            self.browser.run("localStorage['paceline.chat.' + arguments[0]] = arguments[1]", number, text)
        self.reload()
        self.assertEqual(sorted(self.titles()), ["<img src=x onerror=alert(1)>", "Untitled"])
        self.open_chat("Untitled")
        self.assertEqual(self.messages(), [])
        self.open_chat("<img src=x onerror=alert(1)>")
        self.assertEqual(self.messages(), ["<img src=x onerror=alert(1)>"])
        self.assert_quiet_console()

    def test_an_unfinished_answer_is_kept_when_the_page_closes(self):
        answer_with(self.browser, "word " * 300, piece=5, pause_ms=20)
        self.send("Go on")
        self.browser.until("return document.querySelector('.text')?.textContent.includes('word word')")
        self.reload()
        question, answer = self.messages()
        self.assertEqual(question, "Go on")
        self.assertTrue(answer.startswith("word word"), answer)
        self.assertTrue(self.browser.run("return document.querySelector('.ending').checkVisibility()"))
        self.assertIn("the page was closed or reloaded while this answer came", self.browser.text(".ending"))
        self.assert_quiet_console()

    def test_leaving_in_mid_answer_asks_first(self):
        asks = ("const event = new Event('beforeunload', {cancelable: true}); dispatchEvent(event);"
                "return event.defaultPrevented")
        self.assertFalse(self.browser.run(asks))
        answer_with(self.browser, "word " * 300, piece=5, pause_ms=20)
        self.send("Go on")
        self.browser.until("return document.querySelector('.text')?.textContent.includes('word')")
        self.assertTrue(self.browser.run(asks))
        self.browser.press("Escape")
        self.until_answered()
        self.assertFalse(self.browser.run(asks))

    def test_another_tab_changes_the_chats(self):
        self.two_chats()
        first = self.browser.run("return Object.keys(localStorage).find((name) =>"
                                 "  name.startsWith('paceline.chat.') && localStorage[name].includes('First'))")
        # A frame of the same site is another document, as another tab is.
        other = ("const frame = document.createElement('iframe'); document.body.append(frame);"
                 "const {localStorage: storage} = frame.contentWindow;")
        self.browser.run(other + "storage[arguments[0]] = storage[arguments[0]].replaceAll('First', 'Changed');", first)
        self.browser.until(TITLES + ".includes('Changed question')")
        self.browser.run(other + "storage.clear()")
        self.browser.until(TITLES + ".length === 0")
        self.assertEqual(self.messages(), [])
        self.assert_quiet_console()

    def test_a_system_prompt_belongs_to_its_chat(self):
        self.set("system", "Be brief.")
        self.ask("First question", "Yes.")
        self.browser.click("#new-chat")
        self.set("system", "")
        self.ask("Second question", "No.")
        self.open_chat("First question")
        self.assertEqual(self.browser.run("return document.querySelector('[name=system]').value"), "Be brief.")
        self.ask("More?", "No.")
        self.assertEqual(sent(self.browser)[-1]["messages"][0], {"role": "system", "content": "Be brief."})
        self.assert_quiet_console()

    def test_on_a_phone(self):
        self.browser.set_size(*PHONE)
        self.ask("First question, which is so long that it does not fit beside the buttons", "Code:\n\n```py\n"
                 + "x" * 200 + "\n```\n\n| a | b | c |\n|---|---|---|\n| " + "wide " * 20 + " | " + "w" * 80 + " | 3 |\n")
        self.assert_no_sideways_scrolling("an answer with code and a table")
        self.browser.click(".views [data-view=chats]")
        self.assert_no_sideways_scrolling("the list of chats")
        self.browser.click("#new-chat")
        self.assertTrue(self.browser.run("return document.querySelector('#prompt').checkVisibility()"))
        self.browser.click(".views [data-view=chats]")
        self.browser.click(".chat-title")
        self.assertEqual(len(self.messages()), 2)
        self.assert_quiet_console()


if __name__ == "__main__":
    unittest.main()
