"""Detectors of river on series of errors. Reads {"series": [{"known": [...], "fresh": [...]}]}, writes the indices of new dates with a drift."""
import json
import math
import sys

from river import drift

# The defaults expect thousands of values. These react within a few.
DETECTORS = {
    "ADWIN": lambda: drift.ADWIN(delta=0.05, clock=1, min_window_length=2, grace_period=4),
    "Page-Hinkley": lambda: drift.PageHinkley(min_instances=5, delta=0.1, threshold=2.0, alpha=1.0, mode="up"),
    "ADWIN, defaults": lambda: drift.ADWIN(),
    "Page-Hinkley, defaults": lambda: drift.PageHinkley(),
}

series = json.load(sys.stdin)["series"]
found = {}
for name, make in DETECTORS.items():
    found[name] = []
    for one in series:
        detector = make()
        for error in one["known"]:
            detector.update(math.log(error + 1e-8))
        drifts = []
        for i, error in enumerate(one["fresh"]):
            detector.update(math.log(error + 1e-8))
            if detector.drift_detected:
                drifts.append(i)
        found[name].append(drifts)
json.dump(found, sys.stdout)
