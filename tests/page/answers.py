"""Lets a test set the model's answers: the page's requests for chats are answered inside the browser."""

# Each call of __answer(text) is the answer to all later chats, in pieces of __piece characters, one every __pause_ms. Its
# last event has __timings, where there are some.
SET_UP = """
if (!window.__answer) {
  const real = window.fetch;
  window.__sent = [];
  window.__answer = (text) => { window.__text = text; };
  window.fetch = (path, options) => {
    if (path !== "/v1/chat/completions") return real(path, options);
    window.__sent.push(JSON.parse(options.body));
    const text = window.__text;
    const lines = [];
    const line = (choice) => `data: ${JSON.stringify({id: "chatcmpl-test", choices: [choice]})}\\n\\n`;
    for (let i = 0; i < text.length; i += window.__piece) {
      lines.push(line({index: 0, delta: {content: text.slice(i, i + window.__piece)}, finish_reason: null}));
    }
    lines.push(line({index: 0, delta: {}, finish_reason: "stop", timings: window.__timings ?? undefined}), "data: [DONE]\\n\\n");
    const encoder = new TextEncoder();
    const body = new ReadableStream({
      async pull(controller) {
        if (window.__pause_ms) await new Promise((resolve) => setTimeout(resolve, window.__pause_ms));
        options.signal?.throwIfAborted();
        controller.enqueue(encoder.encode(lines.shift()));
        if (lines.length === 0) controller.close();
      }});
    return Promise.resolve(new Response(body, {headers: {"Content-Type": "text/event-stream"}}));
  };
}
[window.__piece, window.__pause_ms, window.__timings] = [arguments[1], arguments[2], arguments[3]];
window.__answer(arguments[0]);
"""


def answer_with(browser, text, piece=5, pause_ms=0, timings=None):
    browser.run(SET_UP, text, piece, pause_ms, timings)


def sent(browser):
    """The bodies of the requests since answer_with()."""
    return browser.run("return window.__sent")
