"""Pictures: that each figure has its panel, on machines without a display, and equal bytes for equal figures."""

import pytest
from builders import count_words, make_dataset, make_problem, rated

from cobalt_data.charts import curve_picture, stats_picture, write_picture
from cobalt_data.commit import commit
from cobalt_data.cut import CutConfig, cut
from cobalt_data.errors import CobaltError
from cobalt_data.stats import stats

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def versions(tmp_path_factory):
    """Of problems alone, and with trajectories and prompts."""
    problems = [make_problem("a", difficulty="easy"), make_problem("b", split="test")]
    trajectories = [rated(problems[0], [0.5, 1.0]), rated(problems[1], [0.0, 0.5])]
    directory = tmp_path_factory.mktemp("charts")
    made = make_dataset(directory / "full", problems, trajectories)
    return make_dataset(directory / "bare", problems), commit(cut(made, CutConfig("w", "all"), count_words), [made])


def width_and_height(picture):
    assert picture.startswith(PNG)
    return int.from_bytes(picture[16:20], "big"), int.from_bytes(picture[20:24], "big")


def test_a_version_with_more_figures_gets_more_panels(versions):
    bare, full = (width_and_height(stats_picture(stats(version))) for version in versions)
    assert full[0] > bare[0] and full[1] > bare[1]


def test_equal_figures_are_equal_bytes(versions):
    assert stats_picture(stats(versions[1])) == stats_picture(stats(versions[1]))


def test_scores_of_models_get_a_panel_each_set_of_problems():
    rows = [{"step": step, "reward": step / 10} for step in range(1, 30)]
    turns = [(0.1, 0.05, 0.2), (0.2, 0.1, 0.3)]
    one = width_and_height(curve_picture(rows, {"reward": "reward"}))
    three = width_and_height(
        curve_picture(rows, {"reward": "reward"}, {side: {"before": turns, "after": turns} for side in "ab"})
    )
    assert three[0] == 3 * one[0]


def test_figures_that_a_run_never_had_get_no_panel():
    rows = [{"step": step, "reward": step / 10, "kl": None} for step in range(1, 30)]
    one = width_and_height(curve_picture(rows, {"reward": "mean reward", "kl": "KL", "absent": "no such figure"}))
    two = width_and_height(curve_picture(rows, {"reward": "mean reward", "step": "step"}))
    assert two[0] == 2 * one[0]


def test_a_picture_that_cannot_be_written_is_one_line(tmp_path):
    with pytest.raises(CobaltError, match="cannot write there"):
        write_picture(PNG, tmp_path / "missing" / "file.png")
    with pytest.raises(CobaltError, match="is a directory"):
        write_picture(PNG, tmp_path)
    assert not list(tmp_path.iterdir())
