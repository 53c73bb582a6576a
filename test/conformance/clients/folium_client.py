"""Writes a page of folium: the map tiles of a collection, and the outlines of its tiles.

Usage: python3 folium_client.py URL COLLECTION PAGE.html
Prints the number of outlines as JSON.
"""
import json
import sys
from urllib.request import Request, urlopen

import folium

url, collection, page = sys.argv[1:]
tilejson = json.load(urlopen(f"{url}/xyz/{collection}/tilejson.json"))
west, south, east, north = tilejson["bounds"]
longitude, latitude, zoom = tilejson["center"]
view = folium.Map(location=[latitude, longitude], zoom_start=zoom, tiles=None)
folium.TileLayer(
    tiles=tilejson["tiles"][0],
    attr=tilejson.get("attribution", tilejson["name"]),
    name=tilejson["name"],
    min_zoom=tilejson["minzoom"],
    max_native_zoom=tilejson["maxzoom"],
    max_zoom=22,
    bounds=[[south, west], [north, east]],
).add_to(view)
body = json.dumps({"collections": [collection], "limit": 1000}).encode()
found = json.load(urlopen(Request(url + "/search", body, {"content-type": "application/json"})))
folium.GeoJson(
    found,
    style_function=lambda _: {"weight": 1, "fill": False},
    tooltip=folium.GeoJsonTooltip(["geocode", "datetime"]),
).add_to(view)
view.save(page)
print(json.dumps({"outlines": len(found["features"])}))
