"""What tests of the page share that visit one server with nothing stored, and say what the model answers."""
import os

from answers import answer_with
from page_case import PageCase
from server import Server

URL = os.environ.get("PACELINE_PAGE_URL", "").rstrip("/")  # a running server to look at instead of one's own


class FreshPageCase(PageCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.url = URL
        if not URL:
            server = Server()
            cls.addClassCleanup(server.stop)
            cls.url = server.url

    def setUp(self):
        super().setUp()
        self.load(self.url)
        self.browser.run("localStorage.clear(); sessionStorage.clear();")
        self.reload()
        self.browser.console()

    def reload(self):
        self.open(self.url)

    def ask(self, prompt, answer, **options):
        """Sends the prompt and waits for this answer to it."""
        answer_with(self.browser, answer, **options)
        self.send(prompt)
        self.until_answered()
