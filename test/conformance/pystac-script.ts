/** Runs with the address of a server and the id of a collection; prints "all good" where all is. */
export const PYSTAC_SCRIPT = `
import sys
from pystac import Item, STACObjectType
from pystac.validation.stac_validator import JsonSchemaSTACValidator
from pystac_client import Client

url, collection = sys.argv[1:]
client = Client.open(url)
for name in ("CORE", "COLLECTIONS", "FEATURES", "ITEM_SEARCH", "FILTER", "SORT", "FIELDS", "QUERY"):
    assert client.conforms_to(name), name

ids = {one.id for one in client.get_collections()}
assert collection in ids, ids
assert next(client.get_collection(collection).get_items()).collection_id == collection
queryables = client.get_collection(collection).get_queryables()["properties"]
assert "eo:cloud_cover" in queryables

everything = list(client.search(limit=7).items())
matched = client.search(limit=7).matched()
assert len(everything) == matched == len({one.id for one in everything}), (len(everything), matched)
by_get = list(client.search(limit=7, method="GET").items())
assert [one.id for one in by_get] == [one.id for one in everything]

def ids_of(**search):
    first = [one.id for one in client.search(limit=9, **search).items()]
    second = [one.id for one in client.search(limit=9, method="GET", **search).items()]
    assert first == second, search
    return first

cover = {one.id: one.properties.get("eo:cloud_cover") for one in everything}
clear = [one.id for one in everything if cover[one.id] is not None and cover[one.id] <= 15]
assert 0 < len(clear) < matched, clear
json_filter = {"op": "<=", "args": [{"property": "eo:cloud_cover"}, 15]}
assert ids_of(filter=json_filter, filter_lang="cql2-json") == clear
assert [one.id for one in client.search(method="GET", filter="eo:cloud_cover <= 15", filter_lang="cql2-text", limit=9).items()] == clear
assert [one.id for one in client.search(query={"eo:cloud_cover": {"lte": 15}}).items()] == clear
assert [one.id for one in client.search(query=["eo:cloud_cover<=15"]).items()] == clear

known = [one.id for one in sorted((o for o in everything if cover[o.id] is not None), key=lambda o: cover[o.id])]
assert ids_of(sortby="properties.eo:cloud_cover")[: len(known)] == known
item = everything[0]
assert item.id in ids_of(bbox=item.bbox)
assert item.id in ids_of(intersects=item.geometry)
assert item.id in ids_of(datetime=item.properties["datetime"])
assert ids_of(ids=[item.id]) == [item.id]
assert set(ids_of(collections=[collection])) == {one.id for one in everything if one.collection_id == collection}

slim = next(iter(client.search(fields=["id", "properties.platform"], limit=1).items_as_dicts()))
assert set(slim["properties"]) == {"platform"} and "assets" not in slim, slim

validator = JsonSchemaSTACValidator()
for one in everything:
    raw = one.to_dict()
    again = Item.from_dict(raw).to_dict()
    validator.validate_core(again, STACObjectType.ITEM, again["stac_version"], one.id)
for one in client.get_collections():
    raw = one.to_dict()
    validator.validate_core(raw, STACObjectType.COLLECTION, raw["stac_version"], one.id)
broken = everything[0].to_dict()
broken["properties"]["datetime"] = "yesterday"
try:
    validator.validate_core(broken, STACObjectType.ITEM, broken["stac_version"], "broken")
except Exception:
    pass
else:
    raise AssertionError("the validator takes anything")
print("all good")
`;
