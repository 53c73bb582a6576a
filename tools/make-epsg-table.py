"""
Writes src/raster/crs/epsg.tsv, the EPSG coordinate systems that proj4js can convert, from PROJ's database:

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install pyproj==3.7.2 numpy && /tmp/venv/bin/python tools/make-epsg-table.py

A line holds: code, metres, definition, names. `metres` bounds the distance between this definition and the truth because of the datum
shift: 0 for datums that PROJ takes as equal to WGS 84, ? if PROJ knows no shift. `names` (of geographic systems) are the names of the datum in
WKT, lower case, letters and digits only.

A definition has one Helmert shift for all of its area of use. It is the first of these that lies within 1 m of what PROJ does without grids: none,
the shifts in PROJ's database, a fit of 3 and of 7 parameters to PROJ's results; else the one that is closest.
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
CLOSE_METRES = 1.0
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
    """Projections on a sphere of the ellipsoid's area, which proj4js has no word for, without a shift: datums other than WGS 84 are left out."""
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
    west, south, east, north = crs.area_of_use.bounds
    random = np.random.default_rng(1)
    lon = west + random.random(POINTS) * ((east - west) % 360 or 360)
    lon = (lon + 180) % 360 - 180
    lat = south + random.random(POINTS) * (north - south)
    # Points on the datum itself; its axes may be in grads from another meridian.
    own = np.array([lon, lat])
    area = AreaOfInterest(west, south, east, north)
    geodetic = crs.geodetic_crs.to_2d()
    radians = geodetic.axis_info[0].unit_conversion_factor
    meridian = np.degrees(geodetic.prime_meridian.longitude * geodetic.prime_meridian.unit_conversion_factor)
    in_units = [np.radians(lon - meridian) / radians, np.radians(lat) / radians]
    group = TransformerGroup(geodetic, 4326, always_xy=True, area_of_interest=area)
    known = [one for one in group.transformers if "allpark" not in one.description]
    if not known:
        return ("", 0) if is_frame_of_today(crs.ellipsoid) else ("", "?")
    wanted = best_of(known, in_units, own)
    if np.isnan(wanted).all():
        wanted = np.array(known[0].transform(*in_units))
    usable = np.isfinite(wanted).all(axis=0)
    if not usable.any():
        return "", "?"
    own, wanted = own[:, usable], wanted[:, usable]
    accuracy = max([one.accuracy for one in known if one.accuracy >= 0][:1] or [0])

    def error(shift):
        got = Transformer.from_crs(geographic_part(base) + words(shift), 4326, always_xy=True).transform(*own)
        return metres_between(got, wanted)

    candidates = [[0.0] * 7] + helmerts(known)
    errors = []
    for shift in candidates:
        errors.append(error(shift))
        if errors[-1] < CLOSE_METRES:
            break
    best = int(np.argmin(errors))
    if errors[best] >= CLOSE_METRES:
        for parameters in (3, 7):
            shift = fit(own, wanted, crs.ellipsoid, candidates[best], parameters)
            candidates.append(shift)
            errors.append(error(shift))
        best = int(np.argmin(errors))
    shift = candidates[best]
    is_equal = not any(shift) and errors[best] < CLOSE_METRES
    # 999 is EPSG's number for "not known"; shifts of a small part of the area say nothing of the rest.
    if accuracy >= 999 or usable.mean() < 0.3 and not is_equal:
        return words(shift), "?"
    # More points would find a somewhat larger distance.
    return words(shift), 0 if is_equal else int(np.ceil(1.2 * errors[best] + accuracy - 0.05))


def is_frame_of_today(ellipsoid):
    """
    Longitudes and latitudes are used as they are, and rightly: in geocentric frames of satellite geodesy, which lie within metres of WGS 84, and on
    spheres and the ellipsoid of Hughes, which are used for maps only.
    """
    a, b = ellipsoid.semi_major_metre, ellipsoid.semi_minor_metre
    return a == b or abs(a - 6378137) < 2 and abs(b - 6356752) < 2 or (a, round(b)) == (6378273, 6356890)


def best_of(known, in_units, own):
    """Results of the first operation whose area contains the point; NaN if there is none."""
    wanted = np.full_like(own, np.nan)
    for one in known:
        used = one.area_of_use
        west, south, east, north = used.bounds if used else (-180, -90, 180, 90)
        inside = (own[1] >= south) & (own[1] <= north) & ((own[0] - west) % 360 <= ((east - west) % 360 or 360))
        todo = inside & np.isnan(wanted[0])
        wanted[:, todo] = one.transform(in_units[0][todo], in_units[1][todo])
    return wanted


def geographic_part(base):
    kept = [word for word in base.split() if re.match(r"\+(ellps|a|b|rf|R)=", word)]
    return "+proj=longlat " + " ".join(kept)


def words(shift):
    numbers = shift if any(shift[3:]) else shift[:3]
    return " +towgs84=" + ",".join(f"{number:.6f}".rstrip("0").rstrip(".").replace("-0", "0") if number == 0 else f"{number:.6g}" if abs(number) < 1 else f"{number:.8g}" for number in numbers)


def metres_between(a, b):
    _, _, metres = WGS84.inv(a[0], a[1], b[0], b[1])
    return float(np.max(metres)) if len(metres) else 0.0


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
