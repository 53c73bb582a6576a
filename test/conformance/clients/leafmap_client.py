"""leafmap as a client of a server; with the address of a titiler server (1.2) also leafmap's functions that need one.

Usage: python3 leafmap_client.py URL COLLECTION [TITILER]
Prints "all good" at the end.
"""
import json
import math
import os
import sys
import tempfile
from urllib.request import Request, urlopen

import leafmap
import leafmap.foliumap

url, collection, *titiler = sys.argv[1:]


def fetch(path, body=None):
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(url + path, data, {"content-type": "application/json"})) as answer:
        return json.load(answer)


def near(one, other, tolerance=1e-9):
    return len(one) == len(other) and all(abs(a - b) <= tolerance for a, b in zip(one, other))


items = fetch("/search", {"collections": [collection], "limit": 1000})["features"]
item = max(items, key=lambda one: one["properties"]["pixel_coverage"])
item_url = next(link["href"] for link in item["links"] if link["rel"] == "self")
single_bands = item_url + "?bandAssets=true"
tilejson = fetch(f"/xyz/{collection}/tilejson.json")


def check_search():
    assert collection in leafmap.stac_collections(url, return_ids=True)
    assert leafmap.stac_object_type(item_url) == "item"
    assert leafmap.stac_root_link(item_url) == url + "/"
    frame = leafmap.stac_search(url, collections=[collection], limit=7, get_gdf=True)
    assert len(frame) == len(items)
    assert near(frame.total_bounds, fetch(f"/collections/{collection}")["extent"]["spatial"]["bbox"][0])
    links = leafmap.stac_search(url + f"/collections/{collection}", limit=7, get_links=True)
    assert len(set(links)) == len(items) and item_url in links
    where = {"type": "Point", "coordinates": [sum(item["bbox"][::2]) / 2, sum(item["bbox"][1::2]) / 2]}
    assets = leafmap.stac_search(url, collections=[collection], intersects=where, get_assets=True)
    assert assets[item["id"]] == {name: one["href"] for name, one in item["assets"].items()}
    query = {"eo:cloud_cover": {"lte": 15}}
    clear = leafmap.stac_search(url, collections=[collection], query=query, get_info=True)
    covers = {one["id"]: one["properties"].get("eo:cloud_cover") for one in items}
    assert set(clear) == {name for name, cover in covers.items() if cover is not None and cover <= 15}


def check_maps():
    zooms = {"min_zoom": tilejson["minzoom"], "max_native_zoom": tilejson["maxzoom"]}
    for view in (leafmap.Map(), leafmap.foliumap.Map()):
        credit = tilejson.get("attribution", collection)
        view.add_tile_layer(tilejson["tiles"][0], name=collection, attribution=credit, **zooms)
        if titiler:
            view.add_stac_layer(single_bands, assets=rgb_assets(), titiler_endpoint=titiler[0])
        with tempfile.TemporaryDirectory() as folder:
            page = os.path.join(folder, "map.html")
            view.to_html(page)
            with open(page) as text:
                assert tilejson["tiles"][0] in text.read()


def rgb_assets():
    """Three of the assets of one band each."""
    return [name for name in fetch(single_bands[len(url) :])["assets"] if "_" in name][:3]


def check_titiler(endpoint):
    name, asset = next((k, v) for k, v in item["assets"].items() if "data" in v.get("roles", []))
    where = sum(item["bbox"][::2]) / 2, sum(item["bbox"][1::2]) / 2
    at = {"titiler_endpoint": endpoint}
    rasters = [key for key, one in item["assets"].items() if "geotiff" in one["type"]]
    assert near(leafmap.stac_bounds(item_url, **at), item["bbox"], 1e-6)
    assert leafmap.stac_assets(item_url, **at) == rasters
    assert leafmap.stac_bands(item_url, **at) == rasters
    stored = leafmap.stac_info(item_url, assets=name, **at)[name]
    bands = [band["name"] for band in asset["eo:bands"]]
    assert [band for _, band in stored["band_descriptions"]] == bands
    assert [stored["height"], stored["width"]] == asset["proj:shape"]
    assert leafmap.stac_stats(item_url, assets=name, **at)
    assert near(leafmap.cog_bounds(asset["href"], **at), item["bbox"], 1e-6)
    assert leafmap.cog_validate(asset["href"])[0]
    values = leafmap.cog_pixel_value(*where, asset["href"], bidx=None, **at)
    first = asset["raster:bands"][0]
    body = {"ids": [item["id"]], "expression": bands[0]}
    body["geometry"] = {"type": "Point", "coordinates": where}
    value = fetch("/timeseries", body)["series"][0].get("value")
    if value is not None:
        got = list(values.values())[0] * first["scale"] + first["offset"]
        assert abs(got - value) < 1e-6, (values, value)
    assert len(rgb_assets()) == 3
    tiles = leafmap.stac_tile(single_bands, assets=rgb_assets(), rescale="0,3000", **at)
    x, y = tile_at(12, *where)
    with urlopen(tiles.format(z=12, x=x, y=y)) as answer:
        assert answer.headers["content-type"].startswith("image/")


def tile_at(zoom, longitude, latitude):
    down = 1 - math.asinh(math.tan(math.radians(latitude))) / math.pi
    return int((longitude + 180) / 360 * 2**zoom), int(down / 2 * 2**zoom)


check_search()
check_maps()
if titiler:
    check_titiler(titiler[0])
print("all good")
