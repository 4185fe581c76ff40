#!/usr/bin/env python3
"""Makes openapi.json of openapi.yaml (needs PyYAML): python3 proto/openapi.py >proto/openapi.json"""

import json
import pathlib
import sys

import yaml

source = pathlib.Path(__file__).with_name("openapi.yaml")
json.dump(yaml.safe_load(source.read_text()), sys.stdout, indent=1, ensure_ascii=False)
print()
