"""Every event type of the catalogue has a schema and an example that agree."""

import copy

from jsonschema import Draft202012Validator
from jsonschema_specifications import REGISTRY


def validator(schema):
    """Checks formats too, and resolves nothing outside the schema itself: no reference may need the network."""
    return Draft202012Validator(schema, registry=REGISTRY, format_checker=Draft202012Validator.FORMAT_CHECKER)


def test_the_catalogue_names_each_type_once_and_describes_it(catalog):
    names = [event_type["type"] for event_type in catalog["types"]]
    assert names
    assert len(names) == len(set(names))
    for event_type in catalog["types"]:
        assert event_type["description"].strip(), event_type["type"]
        assert event_type["entityType"], event_type["type"]
        versions = [version["version"] for version in event_type["versions"]]
        assert versions and len(versions) == len(set(versions)), event_type["type"]


def test_the_envelope_is_a_valid_schema(catalog):
    Draft202012Validator.check_schema(catalog["envelope"])


def test_the_schema_is_valid(entry):
    Draft202012Validator.check_schema(entry["schema"])


def test_the_example_agrees_with_the_schema(entry):
    validator(entry["schema"]).validate(entry["example"])


def test_an_example_that_lacks_a_required_member_is_refused(entry):
    for member in entry["schema"].get("required", []):
        broken = copy.deepcopy(entry["example"])
        del broken[member]
        assert not validator(entry["schema"]).is_valid(broken), member
