"""What the tests of structured output share, whatever client asks: the question, the answers' models, the server."""
from enum import Enum
from pathlib import Path

from contract_case import ContractCase
from pydantic import BaseModel, ConfigDict, Field

TEMPLATE = Path(__file__).resolve().parent / "tool_template.jinja"
QUESTION = [{"role": "user", "content": "Who lives in the old house by the river?"}]
# Without additionalProperties: false in the schema an object may have any further members.
CLOSED = ConfigDict(extra="forbid")


class Mood(str, Enum):
    CALM = "calm"
    ANGRY = "angry"


class Person(BaseModel):
    model_config = CLOSED
    name: str = Field(max_length=12)
    mood: Mood
    tags: list[bool] = Field(max_length=3)


class House(BaseModel):
    """Says which house it is."""
    model_config = CLOSED
    street: str = Field(max_length=16)
    is_empty: bool


class StructuredCase(ContractCase):
    options = ("--chat-template", str(TEMPLATE))

    def setUp(self):
        self.url = self.server.url + "/v1"
        self.model = self.client.get("/v1/models").json["data"][0]["id"]
        # The bundled model knows no JSON: without this it would write blanks as long as it may.
        tokens = self.client.post("/tokenize", {"content": "\n", "add_special": False}).json["tokens"]
        self.no_breaks = {str(token): -100 for token in tokens}
