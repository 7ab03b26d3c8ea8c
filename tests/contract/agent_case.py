"""Servers for clients of agents: the bundled model with room for their prompts, under its own template and real ones."""
import json
import os
import sys
import tempfile
import unittest
from pathlib import Path

from contract_case import HERE, ContractCase

from program import BUNDLED, ROOT
from serving import Client, Server

KEY, OTHER_KEY = "sk-one", "sk-two"
OWN_TEMPLATE = HERE / "tool_template.jinja"
SHARED_TEMPLATES = ROOT.parent / "shared/templates/jinja"
TEMPLATES = {"Own": OWN_TEMPLATE, "Qwen3": SHARED_TEMPLATES / "Qwen-Qwen3-0.6B.jinja",
             "Llama32": SHARED_TEMPLATES / "meta-llama-Llama-3.2-3B-Instruct.jinja"}
REAL_FIRST = {"anthropic_client_test.py": 1, "codex_test.py": 1, "ollama_client_test.py": 1}  # of over_templates
NUM_POSITIONS = 32768
QUESTION = "Who lives in the old house by the river?"
# Of coding agents.
RULES = "You are a coding agent. Work in the user's repository, run commands, keep answers short. " * 12
SHELL = {"type": "object", "required": ["command"], "additionalProperties": False, "properties": {
    "command": {"type": "string", "maxLength": 20, "description": "What the shell runs."},
    "workdir": {"type": "string", "maxLength": 10}, "timeout_ms": {"type": "integer", "minimum": 1, "maximum": 9}}}


def write_agent_model(folder):
    """The bundled model with more positions. The penalty keeps it from filling JSON with blanks, of which it knows no better."""
    folder.mkdir()
    for file in BUNDLED.iterdir():
        if file.name not in ("config.json", "generation_config.json"):
            (folder / file.name).symlink_to(file)
    changes = {"config.json": {"max_position_embeddings": NUM_POSITIONS},
               "generation_config.json": {"repetition_penalty": 1.3}}
    for name, change in changes.items():
        (folder / name).write_text(json.dumps({**json.loads((BUNDLED / name).read_text()), **change}))
    return folder


def events_of(answer):
    """(name, data) of each event; a name says the same as its data's type."""
    events = []
    for text in answer.body.decode().split("\n\n"):
        lines = [line for line in text.split("\n") if line and not line.startswith(":")]
        if not lines or lines == ["data: [DONE]"]:
            continue
        name, data = lines
        assert name.startswith("event: ") and data.startswith("data: "), text
        events.append((name[7:], json.loads(data[6:])))
        assert events[-1][0] == events[-1][1]["type"], text
    return events


class AgentCase(ContractCase):
    """self.model at self.server, which has two keys."""
    template = OWN_TEMPLATE
    model = "paceline-agent"
    more_options = ()
    routes = ()  # that it asks; a server without them has nothing to try

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        model = write_agent_model(Path(folder.name) / cls.model)
        cls.server = Server("--chat-template", cls.template, "--api-key", KEY, "--api-key", OTHER_KEY,
                            "--max-num-seqs", "16", "--kv-cache-memory-bytes", "512M", "--max-compaction-tokens", "60",
                            *cls.more_options, model=model)
        cls.addClassCleanup(cls.server.stop)
        cls.client = Client(cls.server.port, KEY)
        cls.url = cls.server.url
        cls.paths = cls.client.get("/openapi.json").json["paths"]
        for route in cls.routes:
            if route not in cls.paths:
                raise unittest.SkipTest(f"the server has no {route}")


def over_templates(module, *cases):
    """Makes each case a test under its own template and one of the real ones in turn, of those that are there; at full
    scale under each."""
    is_full = os.environ.get("PACELINE_TEST_SCALE") == "full"
    script = Path(sys.modules[module].__file__).name
    for place, case in enumerate(cases, start=REAL_FIRST.get(script, 0)):
        real = list(TEMPLATES)[1:][place % 2]
        for name, template in TEMPLATES.items():
            if template.exists() and (is_full or name in ("Own", real)):
                setattr(sys.modules[module], f"{case.__name__}Over{name}",
                        type(f"{case.__name__}Over{name}", (case, AgentCase), {"template": template, "__module__": module}))
