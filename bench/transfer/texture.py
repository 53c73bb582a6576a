"""python3 texture.py WIDTH HEIGHT TIMES < IMAGE: CPU milliseconds of the texture of an image of bytes by scikit-image, and the values."""
import json
import math
import sys
import time

import numpy as np
from skimage.feature import graycomatrix, graycoprops

PROPERTIES = ["contrast", "dissimilarity", "homogeneity", "energy", "correlation", "ASM"]
DISTANCES = [1, 2, 3]
ANGLES = [0, math.pi / 4, math.pi / 2, 3 * math.pi / 4]

width, height, times = map(int, sys.argv[1:])
image = np.frombuffer(sys.stdin.buffer.read(), np.uint8).reshape(height, width).copy()


def texture():
    counts = graycomatrix(image, DISTANCES, ANGLES, levels=256, symmetric=True, normed=False)[1:, 1:]
    return [float(graycoprops(counts, name)[d].mean()) for d in range(len(DISTANCES)) for name in PROPERTIES]


texture()
begun = time.process_time()
for _ in range(times):
    values = texture()
print(json.dumps({"ms": 1000 * (time.process_time() - begun) / times, "values": values}))
