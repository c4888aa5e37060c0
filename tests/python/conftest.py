"""The generated files as tests see them: parsed with an implementation that is not ours."""

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def load(relative):
    return json.loads((ROOT / relative).read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def openapi():
    return load("contract/openapi.json")


@pytest.fixture(scope="session")
def config_schema():
    return load("contract/config.schema.json")


@pytest.fixture(scope="session")
def catalog():
    return load("docs/events/catalog.json")


def pytest_generate_tests(metafunc):
    """Runs a test that takes `entry` once for each version of each event type."""
    if "entry" in metafunc.fixturenames:
        entries = [
            (f"{event_type['type']}.v{version['version']}", version)
            for event_type in load("docs/events/catalog.json")["types"]
            for version in event_type["versions"]
        ]
        metafunc.parametrize("entry", [v for _, v in entries], ids=[name for name, _ in entries])
