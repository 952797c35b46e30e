"""docs/openapi.yaml parses, is a sound document, and is what the service serves."""

import jsonschema
import pytest

from contract import PROBLEMS
from lab import DOCUMENT, ROOT

OPERATIONS = sorted((method, template) for method, template, _ in DOCUMENT.operations())
OTHER_METHODS = sorted(
    (method, template)
    for template in DOCUMENT.tree["paths"]
    for method in {"DELETE", "PATCH", "PUT", "POST", "GET"} - DOCUMENT.methods(template)
)


NONE_YET = ("/sandboxes/", "/class/", "/orders/{id}", "/runs/{id}", "/page/{folder}/{name}", "/lessons/{lesson}")  # a new service has none


def references(node):
    """Every $ref below NODE."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "$ref":
                yield value
            else:
                yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


def test_its_references_lead_somewhere():
    for reference in sorted(set(references(DOCUMENT.tree))):
        assert DOCUMENT.resolver.resolve(reference)[1], reference


def test_every_component_is_used():
    used = set(references(DOCUMENT.tree))
    for kind, components in DOCUMENT.tree["components"].items():
        if kind == "securitySchemes":
            continue
        for name in components:
            if (kind, name) == ("responses", "MethodNotAllowed"):  # of every path, so of no operation
                continue
            assert f"#/components/{kind}/{name}" in used, f"{kind}/{name} is referred to by nothing"


def test_its_schemas_are_schemas():
    for name, schema in DOCUMENT.tree["components"]["schemas"].items():
        try:
            jsonschema.Draft202012Validator.check_schema(schema)
        except jsonschema.SchemaError as error:
            raise AssertionError(f"{name}: {error.message}") from None


def test_every_operation_is_described():
    names = []
    for method, template, operation in DOCUMENT.operations():
        what = f"{method} {template}"
        assert operation["summary"] and operation["tags"], what
        names.append(operation["operationId"])
        wanted = {part[1:-1] for part in template.split("/") if part.startswith("{")}
        given = {
            DOCUMENT.resolve(parameter)["name"]
            for parameter in operation.get("parameters", ())
            if DOCUMENT.resolve(parameter)["in"] == "path"
        }
        assert given == wanted, f"{what}: path parameters {given}, the path has {wanted}"
        for status, response in operation["responses"].items():
            response = DOCUMENT.resolve(response)
            assert "X-Request-Id" in response["headers"], f"{what} {status}: no X-Request-Id"
            problem = "application/problem+json" in response["content"]
            preferred = "Preference-Applied" in response["headers"]  # a problem with the status that the caller prefers
            assert problem == (int(status) >= 400 or preferred), f"{what} {status}: {list(response['content'])}"
    assert len(set(names)) == len(names), f"an operationId twice in {names}"


def test_it_has_every_problem_with_its_status():
    described = {}
    for schema in DOCUMENT.tree["components"]["schemas"].values():
        properties = schema.get("properties", {})
        if "const" in properties.get("type", {}):
            described[properties["type"]["const"].removeprefix("/problems/")] = properties["status"]["const"]
    assert described == PROBLEMS


def test_its_examples_fit_their_schemas():
    count = 0
    for method, template, operation in DOCUMENT.operations():
        for media in operation.get("requestBody", {}).get("content", {}).values():
            DOCUMENT.validate(media["schema"], media["example"], f"the example of {method} {template}")
            count += 1
    assert count == sum("requestBody" in operation for _, _, operation in DOCUMENT.operations()) > 0


def test_the_service_serves_this_very_document(shop):
    reply = shop.get("/openapi.yaml")
    assert reply.status == 200
    assert reply.body == (ROOT / "docs" / "openapi.yaml").read_bytes()


@pytest.mark.parametrize("method, template", OPERATIONS)
def test_every_operation_is_there(shop, method, template):
    target = template.replace("{id}", "1").replace("{name}", "mutex")
    takes_body = method in ("POST", "PUT")
    parameters = [DOCUMENT.resolve(parameter) for parameter in DOCUMENT.tree["paths"][template][method.lower()].get("parameters", ())]
    lacks = takes_body or any(parameter["in"] == "query" and parameter.get("required") for parameter in parameters)
    reply = shop.call(method, target, b"not json" if takes_body else None)
    expected = 400 if lacks else 404 if template.startswith(NONE_YET) else 200
    assert reply.status == expected, str(reply)


@pytest.mark.parametrize("method, template", OTHER_METHODS)
def test_every_other_method_is_refused(shop, method, template):
    target = template.replace("{id}", "1").replace("{name}", "mutex")
    reply = shop.call(
        method, target, None if method == "GET" else b"{}"
    )  # DOCUMENT.check holds Allow against it
    assert reply.problem == "method-not-allowed", str(reply)


def test_no_secret_paths_beside_it(shop):
    for path in (
        "/orders/",
        "/orders/1/",
        "/orders/1/items",
        "/products/1/reset/now",
        "/nothing",
        "//orders",
        "/strategies/mutex/x",
        "/metrics/",
        "/openapi.yml",
        "/../orders",
    ):
        reply = shop.get(path)
        assert reply.status == 404, f"{path}: {reply}"
