"""
Exceptions from the checks of schemathesis: requests that fit the OpenAPI document and are refused nevertheless. Each has the code of the
error and the reason why the document cannot express the limit. A refusal with another code is a failure.
"""

import json

import schemathesis

# Limits that JSON Schema in the form of OpenAPI 3.0 cannot express. Descriptions in the document state most of them.
LIMITS = {
    "TW_QUERY_BBOX": "ranges and order of the elements of an array: OpenAPI 3.0 has no tuples",
    "TW_QUERY_BBOX_AND_INTERSECTS": "OpenAPI cannot exclude one parameter by another",
    "TW_QUERY_CQL2": "names and types in a condition",
    "TW_QUERY_CQL2_SYNTAX": "the grammar of CQL2 is not regular",
    "TW_QUERY_DATETIME": "days that exist, and an end that is not before the start",
    "TW_QUERY_GEOCODE": "recurse requires geocode, and OpenAPI cannot require one parameter by another",
    "TW_QUERY_GEOMETRY": "closed rings, and ranges of longitude and latitude in one array",
    "TW_QUERY_QUERY": "JSON in a parameter, and values by the type of the property",
    "TW_QUERY_UNKNOWN_PROPERTY": "properties in CQL2 and in the members of query; /queryables lists them",
    "TW_GEOCODE_INVALID": "the characters of a geocode depend on the grid",
    "TW_IMAGERY_EXPRESSION": "the grammar of band expressions is not regular",
    "TW_IMAGERY_LOOK": "parameters that exclude each other, and JSON in parameters",
    "TW_IMAGERY_REGION": "closed rings, and ranges of longitude and latitude in one array",
    "TW_INGEST_BAD_PATTERN": "the grammar of name patterns: each field at most once, and known directives of time",
    "TW_TRAIN_HOLD_OUT": "holdOut and validationFrom exclude each other",
    "TW_TRAIN_ONE_MODEL": "depends on mode",
    "TW_TRAIN_PLACE_MEMORY": "depends on mode",
    "TW_TRAIN_STALE": "depends on stale, mode, model and transfer",
    "TW_TRAIN_TRANSFER": "depends on transfer, mode and store",
    "TW_ANALYSIS_ENDMEMBERS": "either endmembers or library",
    "TW_ANALYSIS_LABELS": "either raster, features or collection; compressed codes",
    "TW_ANALYSIS_LIBRARY_SPECTRUM": "as many values as wavelengths",
    "TW_ANALYSIS_NET_OPTION": "depends on classifier",
    "TW_ANALYSIS_RANGE_ORDER": "the order of two numbers",
    "TW_ANALYSIS_SENSOR": "either sensor or sensorBands",
    "TW_ANALYSIS_SMOOTHING": "window is odd and larger than order, and order is not below derivative",
    "TW_ANALYSIS_WINDOW": "odd numbers, and the order of two numbers",
}

# Requests that the stored data or earlier requests exclude.
STATE = {
    "TW_API_TOKEN": "tokens that the server has issued",
    "TW_QUERY_TOKEN": "tokens that the server has issued",
    "TW_JOB_KEY_REUSED": "an earlier request had the same Idempotency-Key",
    "TW_IMAGERY_BAND": "bands of the collection",
    "TW_IMAGERY_ZOOM": "the lowest zoom depends on the cells of the collection",
    "TW_TRAIN_NOTHING": "tiles that match the filter",
    "TW_TRAIN_ONE_PLACE": "places that match the filter",
    "TW_SUBSCRIPTION_EXISTS": "earlier subscriptions",
    "TW_SUBSCRIPTION_RUNNING": "the last round may still run",
    "TW_QUERY_NO_COLLECTION": "existing collections",
}

# Refusals with the general code, by operation, with a part of the message.
GENERAL = {
    ("POST /ingest", "send options in the JSON"): "OpenAPI cannot tie parameters to the media type of the body",
    ("POST /ingest", "a file needs its name"): "OpenAPI cannot tie parameters to the media type of the body",
    ("POST /ingest", "bands must match pattern"): "OpenAPI 3.0 lacks propertyNames",
    ("POST /processes/ingest/execution", "bands must match pattern"): "OpenAPI 3.0 lacks propertyNames",
    ("GET /collections/{id}/items", "the path names the collection"): "the parameter repeats the path",
    ("GET /collections/{id}/aggregate", "the path names the collection"): "the parameter repeats the path",
    ("POST /collections/{id}/aggregate", "the path names the collection"): "the parameter repeats the path",
}

# The parser of JSON refuses keys such as `__proto__`, which could change objects of the program.
PROTOTYPE = "Body is not valid JSON but content-type is set"

# The document limits single parameters, not the sum of their lengths.
HEADERS_TOO_LONG = 431


@schemathesis.hook
def filter_failure(context, failure, case, response):
    if type(failure).__name__ != "RejectedPositiveData":
        return True
    if response.status_code == HEADERS_TOO_LONG:
        return False
    problem = json.loads(response.content)
    code, detail = problem["code"], problem["detail"]
    label = context.operation.label
    is_general = any(label == operation and text in detail for operation, text in GENERAL) or PROTOTYPE in detail
    return not (code in LIMITS or code in STATE or is_general)
