"""The flows of the lessons and of the static site in Firefox: the same tests as in Chromium."""

import pytest
from firefox import Firefox
from test_page_keyboard import test_a_goal_is_found_and_the_next_lesson_opened, test_a_load_that_waits_is_stopped, test_a_search
from test_page_lessons import *  # noqa: F403
from test_page_site import *  # noqa: F403

BROWSER = Firefox
pytestmark = pytest.mark.long  # `make test` has them in Chromium

# These tests need no browser, so they run only in their own files.
del test_a_mistake_in_a_comment_is_told_with_its_line, test_a_page_is_served_and_kept, test_it_opens_from_files_and_is_small  # noqa: F821
del test_its_links_lead_somewhere, test_its_schedules_can_be_stepped_through_to_their_end, test_no_other_pages  # noqa: F821
del test_states_of_a_common_prefix_are_stored_once, test_the_bundler_refuses_what_it_does_not_know  # noqa: F821
del test_the_contents_have_every_lesson  # noqa: F821
