"""The contract is what its formats say it is."""

import copy

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator
from openapi_spec_validator.validation.exceptions import OpenAPIValidationError


def test_the_contract_is_valid_openapi_3_1(openapi):
    assert openapi["openapi"].startswith("3.1.")
    assert openapi["paths"]
    OpenAPIV31SpecValidator(openapi).validate()


def test_a_contract_with_an_undescribed_response_is_refused(openapi):
    broken = copy.deepcopy(openapi)
    response = next(
        operation["responses"]["200"]
        for path in broken["paths"].values()
        for operation in path.values()
        if isinstance(operation, dict) and "description" in operation.get("responses", {}).get("200", {})
    )
    del response["description"]
    with pytest.raises(OpenAPIValidationError):
        OpenAPIV31SpecValidator(broken).validate()


def test_the_configuration_schema_is_valid_json_schema(config_schema):
    assert config_schema["properties"]
    Draft202012Validator.check_schema(config_schema)
