"""Every lock plays every script, and fails those that it is there to fail."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from basics import at_any_speed
from conditions import SCRIPTS, SHORT_TIMES
from conftest import probes_on
from locks import BREAKS, BY_NAME, longer_times

AT_ONCE = 14  # scripts mostly wait
CASES = [pytest.param(script, lock, id=f"{script.__name__}-{lock}") for script in SCRIPTS for lock in SCRIPTS[script]]


@pytest.fixture(scope="module")
def outcomes(request, stack):
    """Plays all chosen scripts, several at a time."""

    def play(script, lock):
        flawed = lock in BREAKS.get(script.__name__, [])

        def once(scale):
            with probes_on(stack.addresses) as start, longer_times(scale):
                breach = script(lock, start)
                assert flawed or not breach, breach
                return breach

        return at_any_speed(once) if script in SHORT_TIMES else once(1)

    pool = ThreadPoolExecutor(AT_ONCE)
    chosen = [
        (item.callspec.params["script"], item.callspec.params["lock"])
        for item in request.session.items
        if item.originalname == "test_condition"
    ]
    yield {case: pool.submit(play, *case) for case in chosen}
    pool.shutdown(cancel_futures=True)


@pytest.mark.long
@pytest.mark.parametrize("script, lock", CASES)
def test_condition(script, lock, outcomes):
    breach = outcomes[script, lock].result()
    assert breach or lock not in BREAKS.get(script.__name__, []), f"{lock} is there to break this, and did not"


def test_what_a_crash_leaves_is_declared():
    assert {name for name, lock in BY_NAME.items() if not lock.survives_crash} == {
        name for name in BY_NAME if name in BREAKS["crash_of_a_holder"] + BREAKS["crash_inside_acquire"]
    }
