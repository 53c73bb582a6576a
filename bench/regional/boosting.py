"""python3 boosting.py FOLDER: one LightGBM model for all places of a folder; prints the mean squared error at each place."""
import json
import sys

import lightgbm
import numpy as np

folder = sys.argv[1]
about = json.load(open(f"{folder}/about.json"))
# The columns are the features, then the target.
train, validation = (
    np.fromfile(f"{folder}/{name}.f32", np.float32).reshape(-1, about["columns"]) for name in ("train", "validation")
)
options = {"learning_rate": 0.05, "seed": about["seed"], "num_threads": 1, "verbose": -1}
features = np.ascontiguousarray(train[:, :-1])
model = lightgbm.train(options, lightgbm.Dataset(features, train[:, -1].copy()), num_boost_round=500)
squares = (model.predict(validation[:, :-1]) - validation[:, -1]) ** 2
ends = np.cumsum(about["validation"])
print(json.dumps([float(part.mean()) for part in np.split(squares, ends[:-1])]))
