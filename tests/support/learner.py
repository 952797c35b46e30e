"""A learner of a class: what one may call with the token of a sandbox."""


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


class Learner:
    """Somebody who knows the class code."""

    def __init__(self, service, code):
        self.service = service
        reply = service.call("POST", "/sandboxes", {}, bearer(code))
        assert reply.status == 201, str(reply)
        self.token, self.product = reply.json["token"], reply.json["product_id"]
        assert reply.header("Location") == f"/products/{self.product}"

    def call(self, method, target, body=None):
        return self.service.call(method, target, body, bearer(self.token))

    def order(self, product=None):
        return self.call("POST", "/orders", {"product_id": product or self.product, "quantity": 1})
