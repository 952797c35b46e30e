"""Holds every reply of a run against docs/openapi.yaml, and remembers which documented answers were seen."""

import json
import re
from pathlib import Path

import jsonschema
import yaml

# The table of problems: name → status. A reply may carry no other.
PROBLEMS = {
    "bad-request": 400,
    "unauthorized": 401,
    "forbidden-origin": 403,
    "not-yours": 403,
    "no-such-product": 404,
    "no-such-order": 404,
    "not-found": 404,
    "method-not-allowed": 405,
    "sold-out": 409,
    "conflict": 409,
    "idempotency-in-progress": 409,
    "wrong-stock-kind": 409,
    "run-in-progress": 409,
    "question-closed": 409,
    "exercise-missing": 409,
    "payload-too-large": 413,
    "unsupported-media-type": 415,
    "invalid-order": 422,
    "idempotency-mismatch": 422,
    "invalid-schedule": 422,
    "explorer-unavailable": 503,
    "lock-busy": 503,
    "lock-lost": 503,
    "overloaded": 503,
    "backend-unavailable": 503,
    "outcome-unknown": 504,
}

# These always say when to come back.
RETRY_AFTER = {"lock-busy", "overloaded", "run-in-progress"}


class Document:
    """The OpenAPI document, and the answers of it that were seen."""

    def __init__(self, path: Path):
        self.path = path
        self.tree = yaml.safe_load(path.read_text(encoding="utf-8"))
        self.resolver = jsonschema.RefResolver.from_schema(self.tree)
        self.seen = set()  # (METHOD, template, status, problem or None)
        self.patterns = [
            (re.compile("^" + re.sub(r"\{[a-z_]+\}", "[^/]+", template) + "$"), template)
            for template in self.tree["paths"]
        ]
        self.validators = {}

    def resolve(self, node):
        """NODE itself, or what its $ref points to."""
        while "$ref" in node:
            node = self.resolver.resolve(node["$ref"])[1]
        return node

    def operations(self):
        """Yields (METHOD, template, operation)."""
        for template, item in self.tree["paths"].items():
            for method, operation in item.items():
                if method != "parameters":
                    yield method.upper(), template, operation

    def methods(self, template):
        return {method.upper() for method in self.tree["paths"][template] if method != "parameters"}

    def template_of(self, target):
        """The path template of a request target, or None."""
        path = target.split("?", 1)[0]
        for pattern, template in self.patterns:
            if pattern.match(path):
                return template
        return None

    def documented(self):
        """Every (METHOD, template, status, problem or None) of the document."""
        found = set()
        for method, template, operation in self.operations():
            for status, response in operation["responses"].items():
                response = self.resolve(response)
                if not response["content"]:
                    found.add((method, template, int(status), None))
                for kind, media in response["content"].items():
                    if kind != "application/problem+json":
                        found.add((method, template, int(status), None))
                        continue
                    schema = self.resolve(media["schema"])
                    for variant in schema.get("oneOf", [schema]):
                        variant = self.resolve(variant)
                        problem = variant["properties"]["type"]["const"].removeprefix("/problems/")
                        found.add((method, template, int(status), problem))
        return found

    def validate(self, schema, value, what):
        """Fails unless VALUE is as SCHEMA says."""
        key = id(schema)
        if key not in self.validators:
            self.validators[key] = jsonschema.Draft202012Validator(schema, resolver=self.resolver)
        error = jsonschema.exceptions.best_match(self.validators[key].iter_errors(value))
        assert error is None, f"{what}: {error.message}\n  at {list(error.absolute_path)} of {value!r}"

    def check(self, method, target, reply):
        """Fails unless REPLY is one that the document allows for this request."""
        what = f"{method} {target[:200]} → {reply.status}"
        assert reply.header("X-Request-Id"), f"{what}: no X-Request-Id in {reply.headers}"
        crossing = [name for name, _ in reply.headers if name.lower().startswith("access-control-")]
        assert not crossing, f"{what}: CORS headers {crossing}"
        problem = self.check_problem(what, reply) if reply.status >= 400 or reply.header("Preference-Applied") else None

        template = self.template_of(target)
        if template is None:
            assert reply.status in (400, 403, 404), f"{what}: a path that is not documented"
            return
        if method not in self.methods(template):
            if method == "HEAD" and reply.status == 200 and "GET" in self.methods(template):
                return
            assert reply.status == 405, f"{what}: a method that is not documented; {reply.text}"
            allowed = {name.strip() for name in (reply.header("Allow") or "").split(",")}
            assert allowed - {"HEAD", "OPTIONS"} == self.methods(
                template
            ), f"{what}: Allow {allowed}, documented {self.methods(template)}"
            return
        responses = self.tree["paths"][template][method.lower()]["responses"]
        if problem == "forbidden-origin" and "403" not in responses:
            return  # the Host header, which every call is refused for
        assert (
            str(reply.status) in responses
        ), f"{what}: not documented, only {sorted(responses)}; {reply.text}"
        response = self.resolve(responses[str(reply.status)])
        kind = reply.media_type
        assert kind in response["content"] or (
            not response["content"] and not reply.body
        ), f"{what}: content type {kind}, documented {list(response['content'])}"
        if kind and kind.endswith("json"):
            schema = response["content"][kind]["schema"]
            self.validate(schema, reply.json, what)
        for name, header in response.get("headers", {}).items():
            header = self.resolve(header)
            value = reply.header(name)
            assert value is not None or not header.get("required"), f"{what}: no {name} in {reply.headers}"
            if value is not None:
                self.validate(header["schema"], value, f"{what}, header {name}")
        self.seen.add((method, template, reply.status, problem))

    def check_problem(self, what, reply):
        """Fails unless REPLY is a problem of the table; returns its name."""
        assert (
            reply.media_type == "application/problem+json"
        ), f"{what}: content type {reply.media_type}: {reply.text}"
        body = reply.json
        self.validate(self.tree["components"]["schemas"]["Problem"], body, what)
        name = body["type"].removeprefix("/problems/")
        assert name in PROBLEMS, f"{what}: no such problem in the table: {name}"
        assert body["status"] == PROBLEMS[name] and (
            reply.status == 200 if reply.header("Preference-Applied") else reply.status == body["status"]
        ), f"{what}: {name} is {PROBLEMS[name]}, the body says {body['status']}"
        if name in RETRY_AFTER:
            assert re.fullmatch(
                "[1-9][0-9]*", reply.header("Retry-After") or ""
            ), f"{what}: {name} without a Retry-After in seconds: {reply.headers}"
        return name


def strict_json(text):
    """JSON as RFC 8259 has it: no NaN, no member twice."""

    def refuse(constant):
        raise ValueError(f"{constant} is not JSON")

    def pairs(items):
        names = [name for name, _ in items]
        assert len(set(names)) == len(names), f"a member twice in {names}"
        return dict(items)

    return json.loads(text, parse_constant=refuse, object_pairs_hook=pairs)
