"""
Writes src/raster/crs/epsg.tsv, the EPSG coordinate systems that proj4js can convert, from PROJ's database:

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install pyproj==3.7.2 numpy && /tmp/venv/bin/python tools/make-epsg-table.py

A line holds: code, metres, definition, names. `metres` bounds the distance between this definition and the truth because of the datum
shift: the largest distance from PROJ's results, plus the accuracy of PROJ's shifts; 0 for datums that PROJ takes as equal to WGS 84, ? if PROJ knows no
shift or not its accuracy. `names` (of geographic systems) are the names of the datum in WKT, lower case, letters and digits only.

A definition has one Helmert shift for all of its area of use. It is the first of these that lies within 1 m of what PROJ does without grids: none, the
shifts in PROJ's database, a fit of 3 and of 7 parameters to PROJ's results; else the one whose largest distance is smallest. PROJ's results are those of
the operations that it lists first. If those that it uses by default at each point differ from them by more than 1 m, the shift is chosen by the latter,
unless the median distance would become larger by 1 m.
"""
import re
import sys
import warnings
from multiprocessing import Pool
from pathlib import Path

import numpy as np
import pyproj
from pyproj.aoi import AreaOfInterest
from pyproj.database import query_crs_info
from pyproj.enums import PJType, WktVersion
from pyproj.transformer import Transformer, TransformerGroup

warnings.simplefilter("ignore")
pyproj.network.set_network_enabled(False)

OUT = Path(__file__).parent.parent / "src/raster/crs/epsg.tsv"
# proj4js lacks these, or differs from PROJ (it makes mod_krovak as plain Krovak, and ortho on a sphere).
UNKNOWN_METHODS = {"col_urban", "labrd", "mod_krovak", "ortho"}
# proj4js differs from PROJ by more than 0.5 m: hyperbolic Cassini, and Cassini far from its meridian.
INEXACT = {3139, 8044, 8045}
POINTS = 150
POINTS_OF_OPERATION = 12
SHARE_INSIDE = 0.6
SHARE_OF_ZONE = 0.5
CLOSE_METRES = 1.0
# Without grids, PROJ transforms some modern frames to WGS 84 through old datums.
DETOUR_METRES = 10
# The shift of a block or island that differs this much does not determine the shift of its country.
LOCAL_METRES = 100
# Adjacent networks do not differ this much: such a shift (Kosovo on MGI 1901) is an error in the registry.
FAULTY_METRES = 500
# EPSG's number for "not known".
UNKNOWN_ACCURACY = 999
NO_SHIFT = [0.0] * 7
ARC_SECOND = np.pi / 180 / 3600
WGS84 = pyproj.Geod(ellps="WGS84")


def main():
    kinds = (PJType.GEOGRAPHIC_2D_CRS, PJType.GEOGRAPHIC_3D_CRS, PJType.PROJECTED_CRS)
    codes = sorted({int(info.code) for kind in kinds for info in query_crs_info("EPSG", kind, allow_deprecated=True)})
    with Pool(2) as pool:
        lines = pool.map(line_of, codes, chunksize=50)
    version = f"# PROJ {pyproj.proj_version_str}, EPSG {pyproj.database.get_database_metadata('EPSG.VERSION')}, written by tools/make-epsg-table.py"
    OUT.write_text("\n".join([version, *(line for line, _ in lines if line), ""]))
    refused = [f"{code}: {why}" for code, (line, why) in zip(codes, lines) if not line]
    print(f"{len(codes) - len(refused)} systems; left out:", *refused, sep="\n  ", file=sys.stderr)


def line_of(code):
    try:
        crs = pyproj.CRS.from_epsg(code)
        proj = crs.to_proj4()
        method = re.match(r"\+proj=(\w+)", proj)
        if not method or method[1] in UNKNOWN_METHODS:
            return None, f"{crs.name}: {method[1] if method else 'not a PROJ string'}"
        if code in INEXACT:
            return None, f"{crs.name}: proj4js differs from PROJ"
        base = plain(proj)
        if "+R_A" in base:
            return on_sphere(code, crs, base)
        if crs.is_geographic and abs(crs.axis_info[0].unit_conversion_factor - np.pi / 180) > 1e-9:
            return None, f"{crs.name}: in {crs.axis_info[0].unit_name}"
        if "@null" in base:
            return f"{code}\t0\t{base}", None
        shift, metres = best_shift(crs, base)
        names = "" if crs.is_projected else "\t" + " ".join(sorted(set(datum_names(crs))))
        definition = (base + shift).replace("+ellps=WGS84 +towgs84=0,0,0", "+datum=WGS84")
        return f"{code}\t{metres}\t{definition}{names}", None
    except Exception as error:  # The list of systems left out is printed and reviewed.
        return None, f"{type(error).__name__}: {error}"[:100]


def on_sphere(code, crs, base):
    """Projections on a sphere of the ellipsoid's area, which proj4js does not support, without a shift: datums other than WGS 84 are excluded."""
    if not is_frame_of_today(crs.ellipsoid):
        return None, f"{crs.name}: on a sphere with a shift"
    a, b = crs.ellipsoid.semi_major_metre, crs.ellipsoid.semi_minor_metre
    e = np.sqrt(1 - (b / a) ** 2)
    radius = a * np.sqrt((1 + (1 - e**2) / e * np.arctanh(e)) / 2)
    return f"{code}\t0\t{re.sub(r' .(R_A|ellps=.*)(?= |$)', '', base)} +R={radius:.4f}", None


def plain(proj):
    """
    The definition without words that change nothing, and without the datum of old PROJ versions. proj4js needs parameters that are 0, and does not know
    two of the ellipsoids.
    """
    proj = re.sub(r" \+(type=crs|wktext|no_defs|units=m|vunits=\S+)(?= |$)", "", proj + " ").strip()
    if "@null" in proj:
        return proj
    return proj.replace("+datum=WGS84", "+ellps=WGS84").replace("+datum=NAD83", "+ellps=GRS80").replace("+datum=NAD27", "+ellps=clrk66").replace("+ellps=WGS72", "+a=6378135 +rf=298.26").replace("+ellps=GSK2011", "+a=6378136.5 +rf=298.2564151")


def datum_names(crs):
    for version in (WktVersion.WKT2_2019, WktVersion.WKT1_GDAL, WktVersion.WKT1_ESRI):
        try:
            wkt = crs.to_2d().to_wkt(version)
        except Exception:
            continue
        match = re.search(r'(?:DATUM|ENSEMBLE)\["([^"]*)"', wkt or "")
        if match:
            yield re.sub(r"[^a-z0-9]", "", match[1].lower())


def best_shift(crs, base):
    """The shift as PROJ words, and the metres that positions may be off."""
    geodetic = crs.geodetic_crs.to_2d()
    bounds = crs.area_of_use.bounds
    known = operations(geodetic, bounds)
    of_today = is_frame_of_today(crs.ellipsoid)
    if not known:
        return ("", 0) if of_today else ("", "?")
    if of_today and min(one.accuracy for one in known) > DETOUR_METRES:
        return "", 0
    own = points_in(bounds, POINTS, np.random.default_rng(1))
    listed = first_of(known, geodetic, own)
    by_default, accuracies = results_of_proj(crs, geodetic, known, own)
    both = np.isfinite(listed + by_default).all(axis=0)
    shift, metres, error = shift_as_listed(crs, base, known, own, listed)
    if not of_today and both.any() and metres_between(listed[:, both], by_default[:, both]).max() >= CLOSE_METRES:
        shift, metres, error = shift_by_default(crs, base, known, shift, own, by_default, accuracies)
    if not of_today and metres not in (0, "?"):
        metres = max(metres, metres_in_zone(crs, base, geodetic, shift, error))
    return words(shift), metres


def operations(geodetic, bounds):
    group = TransformerGroup(geodetic, 4326, always_xy=True, area_of_interest=AreaOfInterest(*bounds))
    return [one for one in group.transformers if "allpark" not in one.description]


def first_of(known, geodetic, own):
    """Results of the first operation whose area contains the point, NaN if there is none. If that is so everywhere, results of the first operation."""
    in_units = in_units_of(geodetic, own)
    found = np.full_like(own, np.nan)
    for one in known:
        todo = is_inside(one, own) & np.isnan(found[0])
        found[:, todo] = one.transform(in_units[0][todo], in_units[1][todo])
    # All systems of a datum have its shift, even if PROJ has none by default.
    return np.array(known[0].transform(*in_units)) if np.isnan(found).all() else found


def shift_as_listed(crs, base, known, own, wanted):
    """The shift, its metres, and its largest distance from the results of the operations that PROJ lists first."""
    usable = np.isfinite(wanted).all(axis=0)
    if not usable.any():
        return None, "?", 0
    shift, error = closest_shift(crs, base, known, own[:, usable], wanted[:, usable])
    accuracy = max([one.accuracy for one in known if one.accuracy >= 0][:1] or [0])
    return shift, stated_metres(shift, error, accuracy, usable.mean()), error


def shift_by_default(crs, base, known, listed, own, wanted, accuracies):
    """
    The shift, its metres, and its largest distance from PROJ's results by default, which use other operations than those listed first. The shift of the
    operations `listed` first stays if another one would make half of the points, or the largest distance, worse.
    """
    usable = np.isfinite(wanted).all(axis=0)
    share = usable.mean()
    own, wanted, accuracies = own[:, usable], wanted[:, usable], accuracies[usable]
    whole_box = own, wanted
    bounds = crs.area_of_use.bounds
    # The shifts of small areas differ from that of the country: they count for the error, but do not choose the shift.
    local = points_of_operations(known, bounds)
    local_wanted, local_accuracies = results_of_proj(crs, crs.geodetic_crs.to_2d(), known, local)
    worst = accuracy_inside(known, bounds, accuracies)
    counts = accuracies <= worst
    own, wanted = own[:, counts], wanted[:, counts]
    local_counts = np.isfinite(local_wanted).all(axis=0) & (local_accuracies <= worst)
    local, local_wanted = local[:, local_counts], local_wanted[:, local_counts]
    usual = min((distances(base, shift, own, wanted) for shift in [NO_SHIFT, *helmerts(known)]), key=np.median)
    chosen_by = usual < LOCAL_METRES if np.median(usual) < LOCAL_METRES else usual < np.inf
    closest, smallest = closest_shift(crs, base, known, own[:, chosen_by], wanted[:, chosen_by])
    before, after = (np.median(distances(base, shift, *whole_box)) for shift in (listed, closest))
    is_better = smallest < distances(base, listed, own[:, chosen_by], wanted[:, chosen_by]).max() and after < before + CLOSE_METRES
    shift = closest if is_better else listed
    error = largest(np.concatenate([distances(base, shift, own, wanted), distances(base, shift, local, local_wanted)]))
    return shift, stated_metres(shift, error, median_accuracy([*accuracies[counts], *local_accuracies[local_counts]]), share), error


def metres_in_zone(crs, base, geodetic, shift, error):
    """Zones of UTM are used wherever the datum is, also if EPSG has a much smaller area: the metres there if the largest distance is larger, else 0."""
    bounds = bounds_of_zone(crs, geodetic, base)
    if bounds is None:
        return 0
    known = operations(geodetic, bounds)
    own = np.concatenate([points_in(bounds, POINTS, np.random.default_rng(1)), points_of_operations(known, bounds)], axis=1)
    wanted, accuracies = results_of_proj(crs, geodetic, known, own)
    counts = np.isfinite(wanted).all(axis=0)
    counts &= accuracies <= accuracy_inside(known, bounds, accuracies[counts])
    in_zone = largest(distances(base, shift, own[:, counts], wanted[:, counts]))
    accuracy = median_accuracy(accuracies[counts])
    return 0 if in_zone < error + CLOSE_METRES or accuracy >= UNKNOWN_ACCURACY else stated_metres(shift, in_zone, accuracy, 1)


def closest_shift(crs, base, known, own, wanted):
    """The first shift within 1 m of the results wanted, else the one whose largest distance is smallest, and that distance."""

    def error(shift):
        return float(distances(base, shift, own, wanted).max())

    candidates = [NO_SHIFT, *helmerts(known)]
    errors = []
    for shift in candidates:
        errors.append(error(shift))
        if errors[-1] < CLOSE_METRES:
            break
    best = int(np.argmin(errors))
    if errors[best] >= CLOSE_METRES:
        start = candidates[best]
        for parameters in (3, 7):
            candidates.append(fit(own, wanted, crs.ellipsoid, start, parameters))
            errors.append(error(candidates[-1]))
        best = int(np.argmin(errors))
    return candidates[best], errors[best]


def stated_metres(shift, error, accuracy, share):
    is_equal = not any(shift) and error < CLOSE_METRES
    # Shifts of a small part of the area are not representative of the rest.
    if accuracy >= UNKNOWN_ACCURACY or share < 0.3 and not is_equal:
        return "?"
    # More points would find a somewhat larger distance.
    return 0 if is_equal else int(np.ceil(1.2 * error + accuracy - 0.05))


def median_accuracy(accuracies):
    stated = [one for one in accuracies if one < UNKNOWN_ACCURACY]
    return np.median(stated) if stated else UNKNOWN_ACCURACY


def distances(base, shift, own, wanted):
    got = Transformer.from_crs(geographic_part(base) + words(shift), 4326, always_xy=True).transform(*own)
    return metres_between(got, wanted)


def largest(metres):
    return float(max(metres[metres < FAULTY_METRES], default=0))


def bounds_of_zone(crs, geodetic, base):
    """The box of the UTM zone within the area of the datum, if the area of use is much smaller; else None."""
    west, south, east, north = crs.area_of_use.bounds
    zone = re.match(r"\+proj=utm \+zone=(\d+)( \+south)?", base)
    if not zone or west > east:
        return None
    datum = geodetic.area_of_use.bounds
    first = int(zone[1]) * 6 - 186
    left, right = (first, first + 6) if datum[0] > datum[2] else (max(first, datum[0]), min(first + 6, datum[2]))
    bottom, top = (max(datum[1], -80), min(datum[3], 0)) if zone[2] else (max(datum[1], 0), min(datum[3], 84))
    if (east - west) * (north - south) > SHARE_OF_ZONE * max(right - left, 0) * max(top - bottom, 0):
        return None
    return min(west, left), min(south, bottom), max(east, right), max(north, top)


def accuracy_inside(known, bounds, accuracies):
    """
    The metres of the least accurate shift that counts. If more accurate shifts have areas that together span the box, such as two countries, then the
    points that only less accurate ones contain lie in corners of the box, outside of the area.
    """
    west, south, east, north = bounds
    for metres in sorted(set(accuracies)):
        boxes = np.array([one.area_of_use.bounds for one in known if 0 <= one.accuracy <= metres and one.area_of_use])
        spans = len(boxes) and np.all(boxes[:, :2].min(axis=0) <= (west, south)) and np.all(boxes[:, 2:].max(axis=0) >= (east, north))
        if spans and np.mean(accuracies <= metres) >= SHARE_INSIDE:
            return metres
    return np.inf


def points_in(bounds, count, random):
    west, south, east, north = bounds
    lon = west + random.random(count) * ((east - west) % 360 or 360)
    lat = south + random.random(count) * (north - south)
    return np.array([(lon + 180) % 360 - 180, lat])


def points_of_operations(known, bounds):
    """Points in the part of each operation's area that lies in the bounds."""
    random = np.random.default_rng(2)
    areas = [one.area_of_use.bounds for one in known if one.area_of_use]
    all = np.concatenate([points_in(area, POINTS_OF_OPERATION, random) for area in areas] or [np.zeros((2, 0))], axis=1)
    return all[:, contains(bounds, all)]


def is_inside(operation, points):
    return contains(operation.area_of_use.bounds, points) if operation.area_of_use else np.ones(points.shape[1], bool)


def contains(bounds, points):
    west, south, east, north = bounds
    return (points[1] >= south) & (points[1] <= north) & ((points[0] - west) % 360 <= ((east - west) % 360 or 360))


def results_of_proj(crs, geodetic, known, own):
    """
    Longitudes and latitudes on WGS 84 that PROJ calculates for longitudes and latitudes on the datum, and the metres that PROJ states for the operations
    that it chose. NaN where no operation is known.
    """
    in_units = in_units_of(geodetic, own)
    # PROJ chooses by the area of use of the projected system: the datum alone has more operations.
    source = crs if crs.is_projected else geodetic
    points = Transformer.from_crs(geodetic, crs, always_xy=True).transform(*in_units) if crs.is_projected else in_units
    wanted = np.array(Transformer.from_crs(source, 4326, always_xy=True, allow_ballpark=False).transform(*points))
    wanted[:, ~np.isfinite(wanted).all(axis=0)] = np.nan
    accuracies = np.full(own.shape[1], np.nan)
    # Outside of all areas, PROJ takes any operation.
    wanted[:, ~np.any([is_inside(one, own) for one in known], axis=0)] = np.nan
    for one in sorted(known, key=lambda one: one.accuracy if one.accuracy >= 0 else np.inf):
        got = np.array(one.transform(*in_units))
        same = is_inside(one, own) & np.isnan(accuracies) & np.isfinite(got + wanted).all(axis=0)
        same[same] = metres_between(got[:, same], wanted[:, same]) < 0.01
        accuracies[same] = max(one.accuracy, 0)
    rest = max([one.accuracy for one in known if one.accuracy >= 0] or [0])
    return wanted, np.where(np.isnan(accuracies), rest, accuracies)


def is_frame_of_today(ellipsoid):
    """
    Longitudes and latitudes are used as they are, and rightly: in geocentric frames of satellite geodesy, which lie within metres of WGS 84, and on
    spheres and the ellipsoid of Hughes, which are used for maps only.
    """
    a, b = ellipsoid.semi_major_metre, ellipsoid.semi_minor_metre
    return a == b or abs(a - 6378137) < 2 and abs(b - 6356752) < 2 or (a, round(b)) == (6378273, 6356890)


def in_units_of(geodetic, own):
    """Degrees in the units of the datum, which may be grads from another meridian."""
    radians = geodetic.axis_info[0].unit_conversion_factor
    meridian = np.degrees(geodetic.prime_meridian.longitude * geodetic.prime_meridian.unit_conversion_factor)
    return [np.radians((own[0] - meridian + 180) % 360 - 180) / radians, np.radians(own[1]) / radians]


def geographic_part(base):
    kept = [word for word in base.split() if re.match(r"\+(ellps|a|b|rf|R)=", word)]
    return "+proj=longlat " + " ".join(kept)


def words(shift):
    if shift is None:
        return ""
    numbers = shift if any(shift[3:]) else shift[:3]
    return " +towgs84=" + ",".join(f"{number:.6f}".rstrip("0").rstrip(".").replace("-0", "0") if number == 0 else f"{number:.6g}" if abs(number) < 1 else f"{number:.8g}" for number in numbers)


def metres_between(a, b):
    return np.abs(WGS84.inv(a[0], a[1], b[0], b[1])[2]) if len(a[0]) else np.zeros(0)


def helmerts(transformers):
    """Helmert shifts of operations that consist of one, in the position vector convention: metres, arc seconds, parts per million."""
    found = []
    for one in transformers:
        steps = re.findall(r"proj=helmert ([^+]*?)(?= step |$)", one.definition)
        if len(steps) != 1 or re.search(r"proj=(hgridshift|gridshift|molobadekas|geogoffset)", one.definition):
            continue
        values = dict(re.findall(r"(\w+)=([-\d.e]+)", steps[0]))
        sign = -1 if "convention=coordinate_frame" in steps[0] else 1
        turns = [sign * float(values.get(key, 0)) for key in ("rx", "ry", "rz")]
        shift = [float(values.get(key, 0)) for key in "xyz"] + turns + [float(values.get("s", 0))]
        # An inverse step would need the inverse shift.
        if "inv proj=helmert" not in one.definition and shift not in found:
            found.append(shift)
    return found


def to_geocentric(lon, lat, a, e2):
    lon, lat = np.radians(lon), np.radians(lat)
    n = a / np.sqrt(1 - e2 * np.sin(lat) ** 2)
    return np.array([n * np.cos(lat) * np.cos(lon), n * np.cos(lat) * np.sin(lon), n * (1 - e2) * np.sin(lat)])


def fit(own, wanted, ellipsoid, start, parameters):
    """Least squares over east and north; the height does not matter."""
    a, b = ellipsoid.semi_major_metre, ellipsoid.semi_minor_metre
    source = to_geocentric(*own, a, 1 - (b / a) ** 2)
    e2 = 1 - (WGS84.b / WGS84.a) ** 2
    target = to_geocentric(*wanted, WGS84.a, e2)
    lon, lat = np.radians(wanted)
    east = np.array([-np.sin(lon), np.cos(lon), 0 * lon])
    north = np.array([-np.sin(lat) * np.cos(lon), -np.sin(lat) * np.sin(lon), np.cos(lat)])
    x, y, z = source
    o, i = np.zeros_like(x), np.ones_like(x)
    s = ARC_SECOND
    columns = [(i, o, o), (o, i, o), (o, o, i), (o, -z * s, y * s), (z * s, o, -x * s), (-y * s, x * s, o), (x * 1e-6, y * 1e-6, z * 1e-6)]
    columns = [np.array(column) for column in columns]
    shift = np.array(start, float)
    if parameters == 3:
        shift[3:] = 0
    moved = source + sum(value * column for value, column in zip(shift, columns))
    rows = [np.concatenate([(column * axis).sum(axis=0) for axis in (east, north)]) for column in columns[:parameters]]
    miss = np.concatenate([((target - moved) * axis).sum(axis=0) for axis in (east, north)])
    # Parameters that the points do not determine stay where they are.
    likely = np.diag(1 / np.array([100, 100, 100, 5, 5, 5, 10])[:parameters])
    rows = np.vstack([np.array(rows).T, likely])
    change, *_ = np.linalg.lstsq(rows, np.concatenate([miss, np.zeros(parameters)]), rcond=None)
    shift[:parameters] += change
    return [float(value) for value in shift]


if __name__ == "__main__":
    main()
