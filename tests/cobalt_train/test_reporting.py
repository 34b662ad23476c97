"""The picture of a run, drawn from its journal."""

import json

from cobalt_train.reporting import CURVE_NAME, draw_curve


def test_the_picture_of_a_run_lies_beside_its_metrics(tmp_path):
    metrics = tmp_path / "metrics.jsonl"
    rows = [{"step": step, "reward": step / 9, "kl": None, "seconds": {"learn": 1.0}} for step in range(1, 6)]
    metrics.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert draw_curve(metrics) == tmp_path / CURVE_NAME
    assert (tmp_path / CURVE_NAME).read_bytes().startswith(b"\x89PNG")
    assert sorted(path.name for path in tmp_path.iterdir()) == [CURVE_NAME, "metrics.jsonl"]
