"""python3 analysis.py FOLDER TASK: CPU milliseconds of a task over FOLDER/pixels.npy (int16 x 10000) and targets.npy, one thread."""
import sys
import time

import numpy as np
import spectral
from scipy.optimize import nnls

folder, task = sys.argv[1:]
cube = np.load(f"{folder}/pixels.npy").astype(np.float32) / np.float32(10000)
targets = np.load(f"{folder}/targets.npy")
pixels = cube.reshape(-1, cube.shape[2])
sample = pixels[:20000]


def statistics():
    mean = pixels.mean(0)
    covariance = np.cov(pixels, rowvar=False)
    return mean, covariance


if task in ("numpy-ace", "numpy-rx"):
    mean, covariance = statistics()
    white = np.linalg.inv(np.linalg.cholesky(covariance)).astype(np.float32)
    less = (targets - mean).astype(np.float32)
if task in ("spy-ace", "spy-rx"):
    background = spectral.calc_stats(cube)
    background.sqrt_inv_cov


def numpy_sam():
    t = (targets / np.linalg.norm(targets, axis=1, keepdims=True)).astype(np.float32)
    cosines = pixels @ t.T / np.linalg.norm(pixels, axis=1, keepdims=True)
    return np.arccos(np.clip(cosines, -1, 1))


def numpy_ace():
    x, t = (pixels - mean) @ white.T, less @ white.T
    t /= np.linalg.norm(t, axis=1, keepdims=True)
    return (x @ t.T) ** 2 / (x * x).sum(1, keepdims=True)


def scipy_fcls():
    # A row for the sum, heavy enough for 1e-7; as users write it. A part of the pixels, and the time of all.
    weight = 1000
    matrix = np.vstack([targets[:10].T, np.full((1, 10), weight)])
    for pixel in sample:
        nnls(matrix, np.append(pixel, weight))


TASKS = {
    "numpy-pca": lambda: np.linalg.eigh(np.cov(pixels, rowvar=False)),
    "spy-pca": lambda: spectral.principal_components(cube),
    "spy-sam": lambda: spectral.spectral_angles(cube, targets),
    "numpy-sam": numpy_sam,
    "spy-ace": lambda: [spectral.ace(cube, target, background) for target in targets],
    "numpy-ace": numpy_ace,
    "spy-rx": lambda: spectral.rx(cube, background=background),
    "numpy-rx": lambda: (((pixels - mean) @ white.T) ** 2).sum(1),
    "scipy-fcls": scipy_fcls,
}
begun = time.process_time()
TASKS[task]()
spent = time.process_time() - begun
if task == "scipy-fcls":
    spent *= len(pixels) / len(sample)
print(1000 * spent)
