"""QGIS (PyQGIS) as a client of a server: map tiles, OGC API Features, and rasters over HTTP.

Usage: QT_QPA_PLATFORM=offscreen python3 qgis_client.py URL COLLECTION
Prints "all good" at the end. Every check compares with what the server itself answers.
"""
import json
import math
import os
import sys
from urllib.parse import quote, urlencode
from urllib.request import Request, urlopen

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
from qgis.core import (
    QgsApplication,
    QgsCoordinateReferenceSystem,
    QgsCoordinateTransform,
    QgsFeatureRequest,
    QgsMapRendererParallelJob,
    QgsMapSettings,
    QgsPointXY,
    QgsProject,
    QgsRasterLayer,
    QgsRectangle,
    QgsVectorLayer,
)
from qgis.PyQt.QtCore import QSize
from qgis.PyQt.QtGui import QColor, QImage

url, collection = sys.argv[1:]
HALF_WORLD_METRES = math.pi * 6378137


def fetch(path, body=None):
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(url + path, data, {"content-type": "application/json"})) as answer:
        return answer.read()


def found(**query):
    """All Items of a search, by their ids."""
    page = json.loads(fetch("/search?" + urlencode({"collections": collection, "limit": 1000, **query})))
    assert page["numberMatched"] == len(page["features"]), page["numberMatched"]
    return {one["id"]: one for one in page["features"]}


def near(one, other, tolerance=1e-9):
    return all(abs(a - b) <= tolerance for a, b in zip(one, other))


def corners(extent):
    return extent.xMinimum(), extent.yMinimum(), extent.xMaximum(), extent.yMaximum()


def check_map_tiles():
    tilejson = json.loads(fetch(f"/xyz/{collection}/tilejson.json"))
    zooms = f"zmin={tilejson['minzoom']}&zmax={tilejson['maxzoom']}"
    layer = QgsRasterLayer(f"type=xyz&url={quote(tilejson['tiles'][0], safe='')}&{zooms}", "map", "wms")
    assert layer.isValid() and layer.crs().authid() == "EPSG:3857"
    west, south, east, north = tilejson["bounds"]
    zoom = min(tilejson["maxzoom"], 13)
    x = int(((west + east) / 2 + 180) / 360 * 2**zoom)
    y = int((1 - math.asinh(math.tan(math.radians((south + north) / 2))) / math.pi) / 2 * 2**zoom)
    side = 2 * HALF_WORLD_METRES / 2**zoom
    left, top = x * side - HALF_WORLD_METRES, HALF_WORLD_METRES - y * side
    settings = QgsMapSettings()
    settings.setLayers([layer])
    settings.setDestinationCrs(QgsCoordinateReferenceSystem("EPSG:3857"))
    settings.setExtent(QgsRectangle(left, top - side, left + side, top))
    settings.setOutputSize(QSize(256, 256))
    settings.setBackgroundColor(QColor(0, 0, 0, 0))
    job = QgsMapRendererParallelJob(settings)
    job.start()
    job.waitForFinished()
    assert not job.errors(), [one.message for one in job.errors()]
    drawn = job.renderedImage()
    expected = QImage.fromData(fetch(f"/xyz/{collection}/{zoom}/{x}/{y}.png"))
    opaque = 0
    for row in range(256):
        for column in range(256):
            want, got = expected.pixelColor(column, row), drawn.pixelColor(column, row)
            assert want.alpha() == got.alpha(), (column, row)
            if want.alpha() == 255:
                opaque += 1
                assert want.rgba() == got.rgba(), (column, row)
    assert opaque > 1000, opaque


def features_layer():
    layer = QgsVectorLayer(f" url='{url}' typename='{collection}' pageSize='7'", "features", "OAPIF")
    assert layer.isValid()
    return layer


def ids_of(layer, request=QgsFeatureRequest()):
    ids = [feature["id"] for feature in layer.getFeatures(request)]
    assert len(ids) == len(set(ids))
    return set(ids)


def check_features():
    items = found()
    layer = features_layer()
    assert layer.crs().authid() == "EPSG:4326"
    assert layer.featureCount() == len(items)
    described = json.loads(fetch(f"/collections/{collection}"))
    assert near(corners(layer.extent()), described["extent"]["spatial"]["bbox"][0])
    features = {feature["id"]: feature for feature in layer.getFeatures()}
    assert features.keys() == items.keys()
    for name, feature in features.items():
        assert near(corners(feature.geometry().boundingBox()), items[name]["bbox"])
        assert feature["scene"] == items[name]["properties"]["scene"]
        assert near([feature["pixel_coverage"]], [items[name]["properties"]["pixel_coverage"]])

    west, south, east, north = next(iter(items.values()))["bbox"]
    wide, high = (east - west) / 4, (north - south) / 4
    inner = (west + wide, south + high, east - wide, north - high)
    box = ",".join(map(str, inner))
    assert ids_of(features_layer(), QgsFeatureRequest(QgsRectangle(*inner))) == found(bbox=box).keys()
    times = sorted({one["properties"]["datetime"] for one in items.values()})
    for condition, query in [
        (f"datetime >= '{times[-1]}'", {"datetime": f"{times[-1]}/.."}),
        (f"datetime <= '{times[0]}'", {"datetime": f"../{times[0]}"}),
        ("\"eo:cloud_cover\" <= 15", {"filter": "eo:cloud_cover <= 15"}),
    ]:
        layer = features_layer()
        assert layer.setSubsetString(condition), condition
        assert ids_of(layer) == found(**query).keys(), condition


def check_rasters():
    item = max(found().values(), key=lambda one: one["properties"]["pixel_coverage"])
    name, asset = next((k, v) for k, v in item["assets"].items() if "data" in v.get("roles", []))
    bands = [band["name"] for band in asset["eo:bands"]]
    layer = QgsRasterLayer("/vsicurl/" + asset["href"], name, "gdal")
    assert layer.isValid() and layer.crs().authid() == f"EPSG:{item['properties']['proj:epsg']}"
    assert near(corners(layer.extent()), item["properties"]["proj:bbox"], 1e-6)
    assert [layer.height(), layer.width()] == asset["proj:shape"]
    names = [layer.bandName(i + 1) for i in range(layer.bandCount())]
    assert names == [f"Band {i + 1}: {band}" for i, band in enumerate(bands)], names
    query = urlencode({"collections": collection, "ids": item["id"], "limit": 1000})
    mosaic = QgsRasterLayer(f'STACIT:"{url}/search?{query}":asset={name}', "mosaic", "gdal")
    assert mosaic.isValid() and near(corners(mosaic.extent()), item["properties"]["proj:bbox"], 1e-6)

    to_degrees = QgsCoordinateTransform(
        layer.crs(), QgsCoordinateReferenceSystem("EPSG:4326"), QgsProject.instance()
    )
    transform = asset["proj:transform"]
    compared = 0
    for share in (0.2, 0.35, 0.5, 0.65, 0.8):
        column, row = int(layer.width() * share), int(layer.height() * share)
        point = QgsPointXY(
            transform[2] + transform[0] * (column + 0.5), transform[5] + transform[4] * (row + 0.5)
        )
        degrees = to_degrees.transform(point)
        where = {"type": "Point", "coordinates": [degrees.x(), degrees.y()]}
        for number, band in enumerate(bands, start=1):
            body = {"geometry": where, "expression": band, "ids": [item["id"]]}
            value = json.loads(fetch("/timeseries", body))["series"][0].get("value")
            if value is None:
                continue
            # QGIS applies scale and offset of the file. GDAL 3.6 leaves them out of the mosaic.
            stored = asset["raster:bands"][number - 1]
            (got, valid), (raw, also_valid) = (
                one.dataProvider().sample(point, number) for one in (layer, mosaic)
            )
            assert valid and abs(got - value) < 1e-6, (band, got, value)
            mapped = raw if abs(raw - value) < 1e-6 else raw * stored["scale"] + stored["offset"]
            assert also_valid and abs(mapped - value) < 1e-6, (band, raw, value)
            compared += 1
    assert compared > len(bands), compared

    preview = QgsRasterLayer("/vsicurl/" + item["assets"]["thumbnail"]["href"], "preview", "gdal")
    picture = QImage.fromData(fetch(item["assets"]["thumbnail"]["href"][len(url) :]))
    assert preview.isValid()
    assert (preview.width(), preview.height()) == (picture.width(), picture.height())


QgsApplication.setPrefixPath("/usr", True)
application = QgsApplication([], False)
application.initQgis()
check_map_tiles()
check_features()
check_rasters()
print("all good")
# QGIS does not always end cleanly while layers are alive.
sys.stdout.flush()
os._exit(0)
