"""The golden of configuration fields lists what transformers' own classes have, where transformers is installed."""

import json
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class ConfigClasses(unittest.TestCase):
    def test_golden_has_every_field(self) -> None:
        sys.path.insert(0, str(ROOT / "tools" / "goldens"))
        try:
            from make_config_field_goldens import DEFAULT_OUT, all_fields
        except ImportError as error:
            self.skipTest(f"transformers isn't installed: {error}")
        golden = json.loads(DEFAULT_OUT.read_text())
        self.assertEqual(golden, all_fields(), "run tools/goldens/make_config_field_goldens.py, and give each "
                                               "new field a rule in src/models/field_rules.cc")


if __name__ == "__main__":
    unittest.main()
