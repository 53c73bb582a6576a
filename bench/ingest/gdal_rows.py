"""The best that GDAL does at cutting a scene into tiles: all bands of a group at once, one warp a row of cells, windows of it as
compressed tiles; in one process, so that nothing is started twice. The job comes as JSON on standard input (see whole-scene.ts)."""
import json
import os
import sys

from osgeo import gdal

gdal.UseExceptions()
job = json.load(sys.stdin)
options = ["COMPRESS=DEFLATE", "PREDICTOR=2", "ZLEVEL=1", "TILED=YES", "BLOCKXSIZE=512", "BLOCKYSIZE=512", "INTERLEAVE=BAND"]
for _ in range(job.get("repeat", 1)):
    for g, group in enumerate(job["groups"]):
        source = f"/vsimem/{g}.vrt"
        gdal.BuildVRT(source, group["files"], separate=True).FlushCache()
        for row in job["rows"]:
            height = max(cell["shapes"][g][0] for cell in row)
            width = max(cell["shapes"][g][1] for cell in row)
            west = min(cell["bbox"][0] for cell in row)
            east = max(cell["bbox"][2] for cell in row)
            columns = round((east - west) / (row[0]["bbox"][2] - row[0]["bbox"][0]))
            warped = gdal.Warp(
                "/vsimem/row.tif",
                source,
                format="GTiff",
                dstSRS="EPSG:4326",
                outputBounds=[west, row[0]["bbox"][1], east, row[0]["bbox"][3]],
                width=columns * width,
                height=height,
                resampleAlg=group["resampling"],
                srcNodata=group["nodata"],
                dstNodata=group["nodata"],
            )
            for cell in row:
                column = round((cell["bbox"][0] - west) / (east - west) * columns)
                path = os.path.join(job["folder"], f"{cell['geocode']}-{g}.tif")
                gdal.Translate(path, warped, srcWin=[column * width, 0, width, height], creationOptions=options)
            warped = None
            gdal.Unlink("/vsimem/row.tif")
