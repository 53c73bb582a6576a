"""python3 peers.py WAY API WEST SOUTH EAST NORTH ASSET...: reads a region of an Item with another program; prints the cost as JSON."""
import json
import os
import resource
import sys
import time

way, api, *rest = sys.argv[1:]
box = [float(value) for value in rest[:4]]
names = rest[4:]
CRS = "EPSG:32633"
COLLECTIONS = ["sentinel-2-l2a"]

if way == "rasterio":
    # GDAL and rasterio advise these settings for Cloud Optimized GeoTIFFs.
    os.environ.update(
        GDAL_DISABLE_READDIR_ON_OPEN="EMPTY_DIR",
        CPL_VSIL_CURL_ALLOWED_EXTENSIONS=".tif",
        GDAL_HTTP_MERGE_CONSECUTIVE_RANGES="YES",
        GDAL_INGESTED_BYTES_AT_OPEN="32768",
        GDAL_HTTP_MULTIPLEX="YES",
        VSI_CACHE="TRUE",
    )


def search():
    return next(pystac_client.Client.open(api).search(collections=COLLECTIONS, bbox=box).items())


def light_search():
    """The same requests as pystac-client sends, without its classes."""
    landing = json.load(urllib.request.urlopen(api))
    href = next(link["href"] for link in landing["links"] if link["rel"] == "search")
    body = json.dumps({"collections": COLLECTIONS, "bbox": box}).encode()
    request = urllib.request.Request(href, body, {"content-type": "application/json"})
    return json.load(urllib.request.urlopen(request))["features"][0]


if way == "odc-stac":
    import odc.stac
    import pystac_client

    odc.stac.configure_rio(cloud_defaults=True)

    def read(item):
        loaded = odc.stac.load([item], bands=names, bbox=box, crs=CRS, resolution=10, pool=4)
        return sum(band.size for band in loaded.values())

elif way == "rasterio":
    from concurrent.futures import ThreadPoolExecutor

    import pystac_client
    import rasterio
    from rasterio.warp import transform_bounds
    from rasterio.windows import from_bounds

    def read(item):
        bounds = transform_bounds("EPSG:4326", CRS, *box)

        def one(name):
            with rasterio.open(item.assets[name].href) as file:
                window = from_bounds(*bounds, file.transform).round_offsets().round_lengths()
                return file.read(1, window=window).size

        with ThreadPoolExecutor(4) as pool:
            return sum(pool.map(one, names))

else:
    import asyncio
    import math
    import urllib.parse
    import urllib.request

    from async_geotiff import GeoTIFF, Window
    from obstore.store import HTTPStore
    from pyproj import Transformer

    search = light_search

    def read(item):
        west, south, east, north = Transformer.from_crs("EPSG:4326", CRS, always_xy=True).transform_bounds(*box)

        async def one(name):
            url = urllib.parse.urlsplit(item["assets"][name]["href"])
            store = HTTPStore(f"{url.scheme}://{url.netloc}", client_options={"allow_http": True})
            file = await GeoTIFF.open(url.path.lstrip("/"), store=store)
            at = file.transform
            left, right = math.floor((west - at.c) / at.a), math.ceil((east - at.c) / at.a)
            top, bottom = math.floor((north - at.f) / at.e), math.ceil((south - at.f) / at.e)
            window = Window(left, top, right - left, bottom - top)
            return (await file.read(window=window)).data.size

        async def all_assets():
            return sum(await asyncio.gather(*[one(name) for name in names]))

        return asyncio.run(all_assets())


def cpu_seconds():
    return sum(
        usage.ru_utime + usage.ru_stime
        for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


cpu, start = cpu_seconds(), time.perf_counter()
item = search()
searched = time.perf_counter()
pixels = read(item)
print(
    json.dumps(
        {
            "searchSeconds": searched - start,
            "wallSeconds": time.perf_counter() - start,
            "cpuSeconds": cpu_seconds() - cpu,
            "megapixels": int(pixels) / 1e6,
        }
    )
)
# The threads of async-geotiff sometimes crash the interpreter while it ends.
sys.stdout.flush()
os._exit(0)
