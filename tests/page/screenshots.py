"""Takes the screenshots of the page that the documentation shows: screenshots.py DIRECTORY."""
import sys
import time
from pathlib import Path

from server import Server
from webdriver import Browser

SETTLE_S = 0.5


def main(directory):
    directory.mkdir(parents=True, exist_ok=True)
    server = Server()
    try:
        browser = Browser()
        try:
            browser.set_size(1440, 960)
            take(browser, server.url, directory)
        finally:
            browser.close()
    finally:
        server.stop()


def take(browser, url, directory):
    def shot(name):
        browser.screenshot(directory / f"page-{name}.png")

    def fresh(scheme):
        browser.prefer(color_scheme=scheme)
        browser.open(url + "/")
        browser.run("localStorage.clear(); sessionStorage.clear();")  # the chat of the picture before
        browser.open(url + "/")
        browser.until("return document.body.dataset.connection === 'live' && document.querySelector('#model').value")

    def ask(text):
        browser.click("#prompt")
        browser.write(text)
        browser.press("Enter")
        browser.until("return document.querySelector('.answer') && !document.querySelector('[aria-busy]')", within=120)

    def run_eight_streams(selector):
        browser.click(selector)
        browser.until("return /^1\\d\\d tokens/.test(document.querySelector('.stream-head .muted')?.textContent)",
                      within=120)

    for scheme in ("light", "dark"):
        fresh(scheme)
        run_eight_streams("#streams-demo")
        shot(f"eight-streams-{scheme}")
        browser.until("return document.querySelector('#streams-start').checkVisibility()", within=120)

    fresh("light")
    browser.click("summary")
    browser.click("[name=logprobs]")
    browser.click("summary")
    ask("It was a dark and stormy night.")
    browser.point_at(".tokens .token:nth-child(12)")
    time.sleep(SETTLE_S)
    shot("log-probabilities")

    browser.set_size(360, 740)
    fresh("dark")
    ask("Tell me about the old house by the river.")
    shot("phone")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: screenshots.py DIRECTORY")
    main(Path(sys.argv[1]))
