#!/usr/bin/python3
"""A small checkout in Django, in one file. It takes the stock by the idiom that PROTECTION names, so that
`loadtest explore samples/own/django/shop.json` can show which idioms oversell. docs/frameworks/django.md explains them.

POST /orders with {"product_id":1,"quantity":1} answers 201, or 409 if there are not enough units."""

import json
import os
import sys
from urllib.parse import urlsplit

import django
from django.conf import settings
from django.core.servers.basehttp import run
from django.db import models, transaction
from django.db.models import F
from django.http import JsonResponse
from django.urls import path

database = urlsplit(os.environ["DATABASE_URL"])
settings.configure(
    ROOT_URLCONF=__name__,
    ALLOWED_HOSTS=["127.0.0.1"],
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "HOST": database.hostname,
            "PORT": database.port,
            "USER": database.username,
            "PASSWORD": database.password or "",
            "NAME": database.path[1:],
        }
    },
)
django.setup()


class Product(models.Model):
    count = models.IntegerField()
    version = models.IntegerField()

    class Meta:
        app_label, db_table, managed = "shop", "product", False


class OrderItem(models.Model):
    product = models.ForeignKey(Product, on_delete=models.CASCADE)
    quantity = models.IntegerField()

    class Meta:
        app_label, db_table, managed = "shop", "order_item", False


# ---- idioms that oversell ---------------------------------------------------------------------------


@transaction.atomic
def naive(product_id, quantity):
    product = Product.objects.get(id=product_id)
    if product.count < quantity:
        return False
    product.count -= quantity
    product.save()
    OrderItem.objects.create(product=product, quantity=quantity)
    return True


@transaction.atomic
def f_expression(product_id, quantity):
    product = Product.objects.get(id=product_id)
    if product.count < quantity:
        return False
    Product.objects.filter(id=product_id).update(count=F("count") - quantity)
    OrderItem.objects.create(product=product, quantity=quantity)
    return True


@transaction.atomic
def late_lock(product_id, quantity):
    product = Product.objects.get(id=product_id)
    if product.count < quantity:
        return False
    Product.objects.select_for_update().get(id=product_id)
    product.count -= quantity
    product.save()
    OrderItem.objects.create(product=product, quantity=quantity)
    return True


def short_lock(product_id, quantity):
    with transaction.atomic():
        product = Product.objects.select_for_update().get(id=product_id)
    if product.count < quantity:
        return False
    product.count -= quantity
    product.save()
    OrderItem.objects.create(product=product, quantity=quantity)
    return True


# ---- idioms that repair it --------------------------------------------------------------------------


@transaction.atomic
def lock(product_id, quantity):
    product = Product.objects.select_for_update().get(id=product_id)
    if product.count < quantity:
        return False
    product.count -= quantity
    product.save(update_fields=["count"])
    OrderItem.objects.create(product=product, quantity=quantity)
    return True


@transaction.atomic
def condition(product_id, quantity):
    enough = Product.objects.filter(id=product_id, count__gte=quantity)
    if enough.update(count=F("count") - quantity) == 0:
        return False
    OrderItem.objects.create(product_id=product_id, quantity=quantity)
    return True


def version(product_id, quantity):
    for _ in range(10):
        with transaction.atomic():
            product = Product.objects.get(id=product_id)
            if product.count < quantity:
                return False
            same = Product.objects.filter(id=product_id, version=product.version)
            if same.update(count=product.count - quantity, version=product.version + 1) == 1:
                OrderItem.objects.create(product=product, quantity=quantity)
                return True
    raise RuntimeError("ten other orders came first")


# ---- HTTP -------------------------------------------------------------------------------------------

IDIOMS = {idiom.__name__.replace("_", "-"): idiom for idiom in (naive, f_expression, late_lock, short_lock, lock, condition, version)}
PROTECTION = os.environ.get("PROTECTION", "naive")


def orders(request):
    body = json.loads(request.body)
    sold = IDIOMS[PROTECTION](int(body["product_id"]), int(body["quantity"]))
    return JsonResponse({}, status=201 if sold else 409)


urlpatterns = [path("healthz", lambda _: JsonResponse({})), path("orders", orders)]

if PROTECTION not in IDIOMS:
    sys.exit(f"shop: PROTECTION is '{PROTECTION}'. Set it to one of: {', '.join(IDIOMS)}.")
run("127.0.0.1", int(os.environ["PORT"]), django.core.handlers.wsgi.WSGIHandler(), threading=True)
