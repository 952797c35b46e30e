"""The flows of the class board in Firefox: the same tests as in Chromium."""

import pytest
from firefox import Firefox
from test_page_board import *  # noqa: F403
from test_page_keyboard import test_a_dialog_is_left_by_escape, test_what_the_teacher_sends_and_withdraws

BROWSER = Firefox
pytestmark = pytest.mark.long  # `make test` has them in Chromium
