"""The choice of the model: the base and its adapters, kept with each chat."""
import json
import shutil
import struct
import tempfile
import time
import unittest
from pathlib import Path

from answers import sent
from fresh_page_case import URL, FreshPageCase
from server import ROOT, Server

OPTIONS = "return [...document.querySelectorAll('#model option')].map((node) => node.textContent)"
GROUPS = "return [...document.querySelectorAll('#model optgroup')].map((node) => [node.label, node.children.length])"
CHOSEN = "return document.querySelector('#model').value"
CHOOSE = ("const select = document.querySelector('#model'); select.value = arguments[0];"
          "select.dispatchEvent(new Event('change', {bubbles: true}));")


def write_adapter(directory):
    """In PEFT's format: one small pair for the bundled model."""
    header, data = {}, b""
    for side, shape in (("A", [1, 384]), ("B", [384, 1])):
        header[f"base_model.model.model.layers.0.self_attn.q_proj.lora_{side}.weight"] = {
            "dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + 4 * 384]}
        data += struct.pack("<384f", *[0.001] * 384)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    directory.mkdir(parents=True)
    (directory / "adapter_model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    (directory / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "r": 1, "target_modules": ["q_proj"]}))
    return directory


@unittest.skipIf(URL, "its server needs adapters")
class ModelsTest(FreshPageCase):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.adapters = [write_adapter(Path(directory.name, name)) for name in ("sql", "tone")]
        super().setUpClass()

    def start(self, *names):
        server = Server("--served-model-name", "base",
                        *(f"--lora={name}={path}" for name, path in zip(("sql", "tone"), self.adapters) if name in names))
        self.addCleanup(server.stop)
        return server

    def test_each_chat_keeps_its_model(self):
        self.open(self.start("sql", "tone").url)
        self.browser.run("localStorage.clear(); sessionStorage.clear();")
        self.assertEqual(self.browser.run(OPTIONS), ["base", "sql", "tone"])
        self.assertEqual(self.browser.run(GROUPS), [["Adapters", 2]])
        self.assertEqual(self.browser.run(CHOSEN), "base")
        self.browser.run(CHOOSE, "tone")
        self.ask("First question", "First answer.")
        self.assertEqual(sent(self.browser)[-1]["model"], "tone")
        self.browser.click("#new-chat")
        self.assertEqual(self.browser.run(CHOSEN), "tone", "a new chat begins with the model that was shown")
        self.browser.run(CHOOSE, "base")
        self.ask("Second question", "Second answer.")
        self.assertEqual(sent(self.browser)[-1]["model"], "base")
        self.browser.click("#chat-list li:nth-child(2) .chat-title")
        self.assertEqual(self.browser.run(CHOSEN), "tone")
        self.browser.run(CHOOSE, "sql")  # kept without another message
        self.browser.click("#chat-list li:nth-child(1) .chat-title")
        self.assertEqual(self.browser.run(CHOSEN), "base")
        self.browser.click("#chat-list li:nth-child(2) .chat-title")
        self.browser.open(self.browser.run("return location.href"))
        self.until_connected()
        self.assertEqual(self.browser.run(CHOSEN), "sql", "a reload shows the same chat and its model")
        self.ask("And then?", "Then this.")
        self.assertEqual(sent(self.browser)[-1]["model"], "sql")
        self.assert_quiet_console()

    def test_an_adapter_that_is_gone_is_shown_as_missing(self):
        server = self.start("sql")
        self.open(server.url)
        self.browser.run("localStorage.clear(); sessionStorage.clear();")
        self.browser.run(CHOOSE, "sql")
        self.ask("First question", "First answer.")
        self.browser.open("about:blank")  # no page that asks a server which is gone
        server.stop()
        again = Server("--served-model-name", "base", port=server.port)
        self.addCleanup(again.stop)
        self.open(again.url)
        self.assertEqual(self.browser.run(OPTIONS), ["base", "sql (not on this server)"])
        self.assertEqual(self.browser.run(CHOSEN), "sql")
        self.send("And then?")  # to the server itself: a new page has no answers set
        self.browser.until("return document.querySelector('.error')")
        self.assertIn("sql", self.browser.text(".error"))
        self.browser.run(CHOOSE, "base")
        self.assertEqual(self.browser.run(OPTIONS), ["base"], "what is missing is no choice")
        self.ask("Once more?", "Yes.")
        self.assertEqual(sent(self.browser)[-1]["model"], "base")
        self.assert_quiet_console(but_for=["404"])

    def test_a_model_is_loaded_when_it_is_chosen(self):
        shelf = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, shelf)
        for name in ("one", "two"):
            (shelf / name).symlink_to(ROOT / "models" / "paceline-10m")
        server = Server("--served-model-name", "base", "--models-dir", str(shelf))
        self.addCleanup(server.stop)
        self.open(server.url)
        self.wait_for(OPTIONS, ["base", "one (unloaded)", "two (unloaded)"])
        self.browser.run(CHOOSE, "two")
        self.wait_for(OPTIONS, ["base", "one (unloaded)", "two"])

    def wait_for(self, script, expected):
        deadline = time.monotonic() + 30
        while (found := self.browser.run(script)) != expected and time.monotonic() < deadline:
            time.sleep(0.1)
        self.assertEqual(found, expected)


if __name__ == "__main__":
    unittest.main()
