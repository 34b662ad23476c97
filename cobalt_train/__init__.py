"""Reward, rollout, objectives, the trainer and evaluation. Knows `cobalt_data` and `sandbox`. Imports nothing by itself."""
