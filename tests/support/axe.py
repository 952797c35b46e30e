"""axe-core, which looks for what keeps people with a disability from using a page (`make deps-axe` installs it)."""

import os

import pytest

from basics import BUILD

AXE = BUILD / "axe" / "node_modules" / "axe-core" / "axe.min.js"
FAILS = {"serious", "critical"}


def needs_axe():
    """Skips the test where axe-core is not installed; in CI that is an error."""
    if not AXE.exists():
        assert not os.environ.get("CI"), f"{AXE} is not there: .ci/run has to run make deps-axe"
        pytest.skip("axe-core is not installed: make deps-axe")


def findings(browser):
    """The serious and critical findings, one a line: the rule, what it asks for, and the first elements that break it."""
    browser.driver.execute_script(AXE.read_text(encoding="utf-8"))
    # What fades in has little contrast until it is there.
    browser.driver.execute_async_script(
        "const [done] = arguments, ends = (animation) => animation.effect?.getComputedTiming().endTime < Infinity;"
        "Promise.allSettled(document.getAnimations().filter(ends).map((animation) => animation.finished)).then(() => done());"
    )
    result = browser.driver.execute_async_script(
        "const done = arguments[0]; axe.run(document, {resultTypes: ['violations']}).then(done, (error) => done({error: String(error)}));"
    )
    assert "error" not in result, result
    assert result["passes"], "axe-core looked at nothing"
    return [
        f"{found['impact']}: {found['id']}: {found['help']}: {[(node['target'], [why['message'] for why in node['any'][:1]]) for node in found['nodes'][:3]]}"
        for found in result["violations"]
        if found["impact"] in FAILS
    ]
