"""The lessons in the page: each is rendered from docs/workshop, and is done by clicks or by keys alone, without a terminal."""

import re
from html.parser import HTMLParser

import pytest

from browser import Browser
from lab import ROOT

WORKSHOP = ROOT / "docs" / "workshop"
LESSONS = sorted(path.stem for path in WORKSHOP.glob("[0-9][0-9]-*.md"))
PAGES = ["", "guide", "glossary", *LESSONS]


class Anchors(HTMLParser):
    """The links of a page, and what they can lead to."""

    def __init__(self, html):
        super().__init__()
        self.links, self.ids, self.tags = [], [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.tags.append(tag)
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if "id" in found:
            self.ids.append(found["id"])


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    started = Browser(tmp_path_factory.mktemp("downloads"))
    yield started
    started.quit()


@pytest.fixture
def visit(browser, shop):
    """Opens a lesson's page as one who has never been there; the page must not complain."""
    browser.size(1280)

    def go(name=""):
        browser.start(f"http://127.0.0.1:{shop.port}/lessons/{name}")
        return browser

    yield go
    assert browser.complaints() == []


# ── what is served ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_served_and_kept(shop, name):
    reply = shop.get(f"/lessons/{name}")
    assert reply.status == 200 and reply.header("Content-Type") == "text/html; charset=utf-8"
    assert "'unsafe" not in reply.header("Content-Security-Policy")
    assert shop.get(f"/lessons/{name}", {"If-None-Match": reply.header("ETag")}).status == 304
    head = shop.call("HEAD", f"/lessons/{name}")
    assert (head.status, head.body, head.header("ETag")) == (200, b"", reply.header("ETag"))
    html = reply.body.decode()
    assert "<!--" not in html.removeprefix("<!doctype html>") and "```" not in html and not re.search(r"\]\(|^\|", html, re.M), "all is rendered"
    assert Anchors(html).tags.count("h1") == 1
    for inline in ("<script>", "<style", " style=", " onclick="):
        assert inline not in html


def test_no_other_pages(shop):
    for name in ("nothing", "index.html", "..", "../page/shared/dom.js", "01-lost-update.md", "01-lost-update/", "README"):
        assert shop.get(f"/lessons/{name}").problem == "not-found", name


@pytest.mark.parametrize("name", PAGES)
def test_its_links_lead_somewhere(shop, name):
    page = Anchors(shop.get(f"/lessons/{name}").body.decode())
    for link in page.links:
        path, _, anchor = link.partition("#")
        if path.startswith("https://") or link.startswith("http://antirez.com"):
            continue
        assert link.startswith(("/", "#")), link
        target = page if not path else Anchors(shop.get(path).body.decode())
        assert not path or shop.get(path).status == 200, link
        if anchor and path != "/steps":
            assert anchor in target.ids, link


def test_the_contents_have_every_lesson(shop):
    links = Anchors(shop.get("/lessons/").body.decode()).links
    assert [link for link in links if re.match(r"/lessons/\d", link)] == [f"/lessons/{name}" for name in LESSONS]


def test_from_the_first_lesson_to_the_last_by_next(visit):
    page = visit(LESSONS[0])
    for before, name in zip(LESSONS, LESSONS[1:], strict=False):
        page.click("a[rel=next]")
        page.wait(lambda name=name: page.driver.current_url.endswith(f"/lessons/{name}"), f"{name} follows {before}")
    assert not page.all("a[rel=next]") and len(page.all("a[rel=prev]")) == 1


@pytest.mark.parametrize("name", PAGES)
def test_it_fits_a_phone_and_can_be_read(visit, name):
    page = visit(name)
    page.size(320, 700, phone=True)
    assert page.overflows() <= 0
    assert page.too_small() == []
    page.size(1280)
    assert page.low_contrast() == [] and page.unnamed() == []
