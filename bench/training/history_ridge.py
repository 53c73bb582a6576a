"""Ridge regressions of scikit-learn on patches of a series, with settings fixed in advance, as a peer of the models that read history.

usage: python history_ridge.py FOLDER. Prints JSON: for each use of the history and each function the mean squared error of each date.
"""

import glob
import json
import sys

import numpy as np
import rasterio
from rasterio.warp import Resampling, reproject
from sklearn.linear_model import Ridge

SIZE = 16
WIDTH, HEIGHT = 928, 720


def read(folder):
    """Red, green, blue and near infrared of all dates on the grid of the first one."""
    files = sorted(glob.glob(folder + "/*.tif"))
    with rasterio.open(files[0]) as first:
        transform, crs = first.transform * rasterio.Affine.translation(2, 2), first.crs
    bands = np.zeros((len(files), 4, HEIGHT, WIDTH), "f4")
    for date, file in enumerate(files):
        with rasterio.open(file) as source:
            for band in range(4):
                reproject(
                    source.read(band + 1).astype("f4"),
                    bands[date, band],
                    src_transform=source.transform,
                    src_crs=source.crs,
                    dst_transform=transform,
                    dst_crs=crs,
                    resampling=Resampling.bilinear,
                )
    return bands


def patches(images):
    """Means and standard deviations of the bands of each patch: [date, patch, feature]."""
    dates, count, height, width = images.shape
    cut = images.reshape(dates, count, height // SIZE, SIZE, width // SIZE, SIZE)
    both = np.concatenate([cut.mean((3, 5)), cut.std((3, 5))], 1)
    return both.reshape(dates, 2 * count, -1).transpose(0, 2, 1)


bands = read(sys.argv[1])
ndvi = (bands[:, 3] - bands[:, 0]) / np.maximum(bands[:, 3] + bands[:, 0], 1)
truth = patches(ndvi[:, None])[:, :, 0]
colours = bands[:, :3]
low, middle, high = np.percentile(colours, [10, 50, 90], (2, 3))
scaled = (colours - middle[:, :, None, None]) / (high - low)[:, :, None, None]
means = patches(bands / 255)[:, :, :4]


def ridge(features):
    """Predicts a date from its features and the history of its patches; the history never has the date itself."""

    def rows(date, use):
        history = [other for other in use if other != date]
        return np.concatenate([features[date], truth[history].mean(0)[:, None], means[history].mean(0)], 1)

    def predict(date, use):
        model = Ridge(1.0).fit(
            np.concatenate([rows(other, use) for other in use]), np.concatenate([truth[other] for other in use])
        )
        return model.predict(rows(date, use))

    return predict


FUNCTIONS = {
    "mean": lambda date, use: np.full(truth.shape[1], truth[use].mean()),
    "history": lambda date, use: truth[use].mean(0),
    "ridge": ridge(patches(colours / 255)),
    "ridge, colours scaled by date": ridge(patches(scaled)),
    "ridge, both colours": ridge(np.concatenate([patches(colours / 255), patches(scaled)], 2)),
}
DATES = range(len(bands))
USES = {
    "all": {date: [other for other in DATES if other != date] for date in DATES},
    "past": {date: list(range(date)) for date in DATES if date >= 2},
}
print(
    json.dumps(
        {
            name: {
                label: [
                    float(((np.clip(predict(date, use), -1, 1) - truth[date]) ** 2).mean())
                    for date, use in dates.items()
                ]
                for label, predict in FUNCTIONS.items()
            }
            for name, dates in USES.items()
        }
    )
)
