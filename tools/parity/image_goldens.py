#!/usr/bin/env python3
"""Makes the sample pictures and the goldens of media/image from Pillow and transformers.

    image_goldens.py [--repo DIR]

Writes small encoded pictures to tests/field/data/image/ and what Pillow and the PIL-backed
processors of transformers make of them (and of raw pixels) to tests/parity/goldens/image/. Raw
pixels come from a formula that the C++ tests share (`noise`), so that only checksums need to be kept.
"""

import argparse
import io
import json
import pathlib
import struct
import zlib

import numpy
import PIL
import PIL.features
import transformers
from PIL import Image, ImageOps
from transformers.image_transforms import (
    convert_to_rgb,
    get_resize_output_image_size,
    get_size_with_aspect_ratio,
)
from transformers.image_utils import get_image_size_for_max_height_width
from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil
from transformers.models.llava.image_processing_pil_llava import LlavaImageProcessorPil
from transformers.models.siglip.image_processing_pil_siglip import SiglipImageProcessorPil

PROCESSORS = {
    "CLIPImageProcessor": CLIPImageProcessorPil,
    "SiglipImageProcessor": SiglipImageProcessorPil,
    "LlavaImageProcessor": LlavaImageProcessorPil,
}

# (input width, height), (output width, height): odd sizes, one-pixel sides, extreme ratios, both
# directions, one side unchanged, nothing to do.
RESIZES = [
    ((1, 1), (7, 5)), ((1, 50), (20, 10)), ((50, 1), (9, 31)), ((2, 3), (1, 1)),
    ((37, 53), (16, 16)), ((37, 53), (101, 90)), ((100, 75), (100, 30)), ((100, 75), (33, 75)),
    ((64, 64), (64, 64)), ((3, 3), (255, 257)), ((17, 19), (18, 20)), ((257, 27), (336, 336)),
    ((1000, 5), (384, 384)), ((5, 1000), (224, 224)), ((333, 500), (1, 1)), ((2000, 3), (3, 2000)),
    ((640, 480), (224, 224)), ((641, 479), (223, 301)), ((1333, 1000), (384, 384)),
    ((120, 400), (90, 100)), ((90, 200), (91, 199)), ((540, 1200), (384, 384)),
]  # fmt: skip

RECIPES = [
    {"image_processor_type": "CLIPImageProcessor"},
    {"image_processor_type": "CLIPImageProcessor", "size": 112, "crop_size": 96, "resample": 2},
    {"image_processor_type": "CLIPImageProcessor", "size": {"shortest_edge": 60},
     "crop_size": {"height": 75, "width": 48}},
    {"image_processor_type": "CLIPImageProcessor", "size": {"shortest_edge": 50},
     "crop_size": {"height": 64, "width": 65}, "image_mean": 0.5, "image_std": 0.25},
    {"image_processor_type": "CLIPImageProcessor", "size": {"shortest_edge": 90, "longest_edge": 120},
     "do_center_crop": False},
    {"image_processor_type": "CLIPImageProcessor", "do_resize": False, "crop_size": 33},
    {"image_processor_type": "CLIPImageProcessor", "do_normalize": False, "size": 40,
     "crop_size": 40},
    {"image_processor_type": "CLIPImageProcessor", "do_rescale": False, "size": 40,
     "crop_size": 40},
    {"image_processor_type": "SiglipImageProcessor"},
    {"image_processor_type": "SiglipImageProcessor", "size": {"height": 96, "width": 80},
     "resample": 2, "image_mean": [0.1, 0.2, 0.3], "image_std": [0.9, 0.8, 0.7]},
    {"image_processor_type": "SiglipImageProcessor", "size": {"max_height": 70, "max_width": 90},
     "rescale_factor": 0.00784313725490196},
    {"image_processor_type": "LlavaImageProcessor", "size": 84, "crop_size": 84},
    {"image_processor_type": "LlavaImageProcessor", "do_pad": True, "size": 84, "crop_size": 84},
    {"image_processor_type": "LlavaImageProcessor", "do_pad": True, "do_resize": False,
     "crop_size": 50},
]  # fmt: skip

RECIPE_SIZES = [(100, 75), (75, 101), (64, 64), (1, 1), (33, 250), (251, 31), (500, 375)]


def noise(width, height, seed):
    """Reproducible RGB bytes [height, width, 3]: a 32-bit hash of the byte's index and the seed."""
    index = numpy.arange(width * height * 3, dtype=numpy.uint64)
    mask = numpy.uint64(0xFFFFFFFF)
    value = (index * numpy.uint64(2654435761) + numpy.uint64(seed)) & mask
    value ^= value >> numpy.uint64(15)
    value = (value * numpy.uint64(2246822519)) & mask
    value ^= value >> numpy.uint64(13)
    value = (value * numpy.uint64(3266489917)) & mask
    return (value >> numpy.uint64(24)).astype(numpy.uint8).reshape(height, width, 3)


def checksum(array):
    """CRC-32 of an array's bytes in C order."""
    return zlib.crc32(numpy.ascontiguousarray(array).tobytes())


def versions():
    """What made the goldens."""
    return {
        "pillow": PIL.__version__,
        "transformers": transformers.__version__,
        "numpy": numpy.__version__,
        "libjpeg_turbo": PIL.features.version("libjpeg_turbo"),
        "libwebp": PIL.features.version("webp"),
    }


def write_json(path, value):
    """Writes JSON with one list element a line."""
    lines = []
    for key, part in value.items():
        if isinstance(part, list):
            body = ",\n  ".join(json.dumps(element) for element in part)
            lines.append(f" {json.dumps(key)}: [\n  {body}\n ]")
        else:
            lines.append(f" {json.dumps(key)}: {json.dumps(part)}")
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def resize_goldens():
    """Pillow's resize of noise, all filters."""
    cases = []
    for number, (size_in, size_out) in enumerate(RESIZES):
        picture = Image.fromarray(noise(*size_in, seed=number))
        for resample in range(6):
            resized = numpy.asarray(picture.resize(size_out, resample=resample))
            cases.append({"in": size_in, "out": size_out, "filter": resample, "seed": number,
                          "crc32": checksum(resized)})  # fmt: skip
    return {"versions": versions(), "cases": cases}


def recipe_goldens():
    """Pixel tensors of the PIL-backed processors on noise."""
    cases = []
    for number, config in enumerate(RECIPES):
        options = {key: value for key, value in config.items() if key != "image_processor_type"}
        processor = PROCESSORS[config["image_processor_type"]](**options)
        for size in RECIPE_SIZES:
            if size == (1, 1) and "max_height" in json.dumps(config):
                continue
            pixels = noise(*size, seed=number)
            out = processor(Image.fromarray(pixels), return_tensors="np")["pixel_values"][0]
            values = numpy.asarray(out).astype(numpy.float32)
            cases.append({"config": config, "in": size, "seed": number,
                          "out": [values.shape[2], values.shape[1]], "crc32": checksum(values),
                          "first": [float(x) for x in values[:, 0, 0]]})  # fmt: skip
    return {"versions": versions(), "cases": cases}


def small_tensors():
    """A few whole tensors, so that a difference can be looked at."""
    cases = []
    for name, options, size in [
        ("CLIPImageProcessor", {"size": 5, "crop_size": 4}, (9, 7)),
        ("SiglipImageProcessor", {"size": {"height": 3, "width": 5}}, (8, 11)),
        ("LlavaImageProcessor", {"do_pad": True, "size": 4, "crop_size": 4}, (7, 2)),
    ]:
        pixels = noise(*size, seed=99)
        out = PROCESSORS[name](**options)(Image.fromarray(pixels), return_tensors="np")
        values = numpy.asarray(out["pixel_values"][0])
        cases.append({"config": {"image_processor_type": name, **options}, "in": size, "seed": 99,
                      "out": [values.shape[2], values.shape[1]],
                      "values": [float(x) for x in values.reshape(-1)]})  # fmt: skip
    return {"versions": versions(), "cases": cases}


def size_goldens():
    """Resized sizes by the rules of transformers over a sweep with factor multiples and halves."""
    sides = [1, 2, 5, 13, 27, 28, 29, 55, 56, 57, 100, 335, 336, 337, 600, 1000, 1093, 1200, 4031]
    rows = []
    for width in sides:
        for height in sides:
            dummy = numpy.broadcast_to(numpy.uint8(0), (height, width, 3))
            shortest = get_resize_output_image_size(
                dummy, 336, default_to_square=False, input_data_format="channels_last"
            )
            capped = get_size_with_aspect_ratio((height, width), 336, 672)
            within = get_image_size_for_max_height_width((height, width), 384, 512)
            rows.append([width, height, *shortest, *capped, *within])
    columns = (
        "width, height, then height and width by shortest 336, by shortest 336 longest 672, "
        "within 384 x 512"
    )
    return {"versions": versions(), "columns": columns, "rows": rows}


def line_chart_goldens():
    """A chart of one-pixel lines, bilinear and bicubic: one row of the green channel."""
    y, x = numpy.mgrid[0:768, 0:1024]
    line = (x % 16 == 3) | (y % 24 == 5) | ((x + 2 * y) % 41 == 0)
    channel = numpy.arange(3)
    chart = numpy.where(line[..., None], 20 * channel, 250 - 10 * channel).astype(numpy.uint8)
    cases = []
    for resample in (2, 3):
        resized = numpy.asarray(Image.fromarray(chart).resize((224, 224), resample=resample))
        cases.append({"resample": resample, "row_100": resized[100, :, 1].tolist()})
    return {"versions": versions(), "cases": cases}


# --- sample pictures -------------------------------------------------------------------------------

ADAM7 = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2),
         (0, 1, 1, 2)]  # fmt: skip


def png_chunk(name, body):
    """Length, name, body, CRC."""
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def pack_rows(samples, depth):
    """Rows of samples [height, width * channels] as PNG scanlines with filter type 0."""
    out = bytearray()
    for row in samples:
        out.append(0)
        if depth == 16:
            out += row.astype(">u2").tobytes()
        elif depth == 8:
            out += row.astype(numpy.uint8).tobytes()
        else:
            bits = "".join(format(int(value), f"0{depth}b") for value in row)
            bits += "0" * (-len(bits) % 8)
            out += int(bits, 2).to_bytes(len(bits) // 8, "big")
    return bytes(out)


def make_png(samples, depth, color_type, interlaced=False, before=(), after=()):
    """Encodes samples [height, width, channels] as a PNG of any kind; `before` and `after` are
    chunks (name, body) in front of and behind the data."""
    height, width, channels = samples.shape
    header = struct.pack(">IIBBBBB", width, height, depth, color_type, 0, 0, int(interlaced))
    if interlaced:
        data = b""
        for left, top, step_x, step_y in ADAM7:
            part = samples[top::step_y, left::step_x]
            if part.size:
                data += pack_rows(part.reshape(part.shape[0], -1), depth)
    else:
        data = pack_rows(samples.reshape(height, width * channels), depth)
    out = b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", header)
    out += b"".join(png_chunk(*chunk) for chunk in before)
    out += png_chunk(b"IDAT", zlib.compress(data, 9))
    out += b"".join(png_chunk(*chunk) for chunk in after)
    return out + png_chunk(b"IEND", b"")


def quad(width, height):
    """Red top left, green top right, blue bottom left, yellow bottom right."""
    pixels = numpy.zeros((height, width, 3), numpy.uint8)
    half_x, half_y = width // 2, height // 2
    pixels[:half_y, :half_x] = (255, 0, 0)
    pixels[:half_y, half_x:] = (0, 255, 0)
    pixels[half_y:, :half_x] = (0, 0, 255)
    pixels[half_y:, half_x:] = (255, 255, 0)
    return pixels


def exif_block(orientation, little=True):
    """A TIFF structure with the orientation tag alone."""
    order = "<" if little else ">"
    head = b"II*\0" if little else b"MM\0*"
    entry = struct.pack(order + "HHIHH", 0x0112, 3, 1, orientation, 0)
    return head + struct.pack(order + "IH", 8, 1) + entry + struct.pack(order + "I", 0)


def png_samples(random):
    """Every colour type, depth and interlacing, with and without tRNS."""
    files = {}
    width, height = 13, 11
    for color_type, channels, depths in [(0, 1, (1, 2, 4, 8, 16)), (2, 3, (8, 16)),
                                         (3, 1, (1, 2, 4, 8)), (4, 2, (8, 16)),
                                         (6, 4, (8, 16))]:  # fmt: skip
        for depth in depths:
            top = 1 << depth
            samples = random.integers(0, top, (height, width, channels))
            before = []
            if color_type == 3:
                n_colors = min(top, 200)
                samples %= n_colors
                palette = random.integers(0, 256, (n_colors, 3), dtype=numpy.uint8)
                before.append((b"PLTE", palette.tobytes()))
            name = f"png_type{color_type}_depth{depth}"
            files[f"{name}.png"] = make_png(samples, depth, color_type, False, before)
            files[f"{name}_interlaced.png"] = make_png(samples, depth, color_type, True, before)
            if color_type == 3:
                alpha = random.integers(0, 256, n_colors // 2 + 1, dtype=numpy.uint8)
                transparency = alpha.tobytes()
            elif color_type in (0, 2):
                transparency = b"".join(struct.pack(">H", int(v)) for v in samples[3, 4])
            else:
                continue
            chunks = before + [(b"tRNS", transparency)]
            files[f"{name}_trns.png"] = make_png(samples, depth, color_type, False, chunks)
    return files


def field_pngs(random):
    """Pictures of the field cases that are PNG."""
    files = {}
    ramp = numpy.tile(numpy.arange(256) * 257, (4, 1))[..., None]
    files["gray16_ramp.png"] = make_png(ramp, 16, 0)
    files["rgb16_ramp.png"] = make_png(numpy.repeat(ramp, 3, axis=2), 16, 2)
    rgba = random.integers(0, 256, (32, 48, 4))
    rgba[..., 3] = 0
    rgba[8:20, 10:40:3] = (0, 0, 0, 255)
    rgba[25, :] = (200, 100, 50, 128)
    files["hidden_rgb.png"] = make_png(rgba, 8, 6)
    corners = quad(64, 64)
    files["quad_plain.png"] = make_png(corners, 8, 2)
    profile = b"Display P3\0\0" + zlib.compress(b"not a real profile, but long enough" * 8)
    files["quad_iccp.png"] = make_png(corners, 8, 2, before=[(b"iCCP", profile)])
    files["quad_gama.png"] = make_png(corners, 8, 2, before=[(b"gAMA", struct.pack(">I", 100000))])
    files["quad_broken_iccp.png"] = make_png(corners, 8, 2, before=[(b"iCCP", b"x\0\0broken")])
    for where in ("before", "after"):
        chunk = {where: [(b"eXIf", exif_block(6))]}
        files[f"exif6_{where}.png"] = make_png(quad(32, 16), 8, 2, **chunk)
    for width, height in [(1, 1), (1, 1000), (27, 257), (1000, 5), (1093, 5)]:
        files[f"small_{width}x{height}.png"] = make_png(noise(width, height, seed=3), 8, 2)
    return files


def jpeg_bytes(pixels, **options):
    """Pixels as JPEG."""
    out = io.BytesIO()
    Image.fromarray(pixels, **({"mode": options.pop("mode")} if "mode" in options else {})).save(
        out, "JPEG", **options
    )
    return out.getvalue()


def smooth(width, height, seed):
    """A photo-like picture: coarse noise enlarged, fine noise on top."""
    coarse = Image.fromarray(noise(width // 8 + 2, height // 8 + 2, seed))
    base = numpy.asarray(coarse.resize((width, height), Image.Resampling.BICUBIC)).astype(float)
    fine = noise(width, height, seed + 1).astype(float) - 128
    return numpy.clip(base * 0.9 + fine * 0.08 + 8, 0, 255).astype(numpy.uint8)


def jpeg_samples():
    """Samplings, codings, colour spaces, orientations."""
    files = {}
    picture = smooth(53, 37, 5)
    for name, sampling in [("444", 0), ("422", 1), ("420", 2)]:
        files[f"jpeg_{name}.jpg"] = jpeg_bytes(picture, quality=85, subsampling=sampling)
        files[f"jpeg_{name}_progressive.jpg"] = jpeg_bytes(
            picture, quality=85, subsampling=sampling, progressive=True
        )
    files["jpeg_gray.jpg"] = jpeg_bytes(picture[..., 1], quality=85)
    files["jpeg_restart.jpg"] = jpeg_bytes(picture, quality=85, restart_marker_blocks=2)
    files["jpeg_rgb.jpg"] = jpeg_bytes(picture, quality=85, keep_rgb=True)
    inks = numpy.concatenate([picture, noise(53, 37, 8)[..., :1] // 2], axis=2)
    out = io.BytesIO()
    Image.fromarray(inks, mode="CMYK").save(out, "JPEG", quality=85)
    cmyk = out.getvalue()
    files["jpeg_cmyk.jpg"] = cmyk
    at = cmyk.index(b"Adobe") + 11  # the transform byte: 0 is CMYK, 2 is YCCK
    files["jpeg_ycck.jpg"] = cmyk[:at] + b"\x02" + cmyk[at + 1 :]
    for tag in range(1, 9):
        block = b"Exif\0\0" + exif_block(tag, little=tag % 2 == 0)
        files[f"orientation_{tag}.jpg"] = jpeg_bytes(
            quad(448, 224), quality=90, subsampling=0, exif=block
        )
    files["orientation_broken.jpg"] = jpeg_bytes(
        quad(448, 224), quality=90, subsampling=0, exif=b"Exif\0\0II*\0\xff\xff\xff\xff\x01"
    )
    grain = noise(96, 80, 11)
    files["noise_baseline.jpg"] = jpeg_bytes(grain, quality=80)
    files["noise_progressive.jpg"] = jpeg_bytes(grain, quality=80, progressive=True)
    return files


def animated_samples():
    """Red, green and blue frames: the second GIF frame is a patch, the APNG's first picture stands
    outside its animation."""
    size = (40, 30)
    frames = [Image.new("RGB", size, color) for color in ("red", "lime", "blue")]
    files = {}
    for name, kind, options in [
        ("animated.gif", "GIF", {"duration": 100}),
        ("animated.webp", "WEBP", {"lossless": True, "duration": 100}),
        ("animated.png", "PNG", {"default_image": True, "duration": 100}),
    ]:
        sequence = list(frames)
        if kind == "GIF":
            second = frames[0].copy()
            second.paste("lime", (5, 5, 15, 15))
            sequence[1] = second
        out = io.BytesIO()
        sequence[0].save(out, kind, save_all=True, append_images=sequence[1:], **options)
        files[name] = out.getvalue()
    return files


def other_samples():
    """WebP, GIF and BMP."""
    files = {}
    picture = Image.fromarray(smooth(45, 29, 21))
    rgba = picture.copy()
    rgba.putalpha(Image.fromarray(noise(45, 29, 22)[..., 0]))
    exif = exif_block(8)
    for name, image, kind, options in [
        ("lossy.webp", picture, "WEBP", {"quality": 80}),
        ("lossless.webp", picture, "WEBP", {"lossless": True}),
        ("alpha.webp", rgba, "WEBP", {"lossless": True, "exact": True}),
        ("lossy_alpha.webp", rgba, "WEBP", {"quality": 80}),
        ("exif8.webp", picture, "WEBP", {"lossless": True, "exif": exif}),
        ("palette.gif", picture.quantize(37), "GIF", {}),
        ("interlaced.gif", picture.quantize(17), "GIF", {"interlace": 1}),
        ("rgb24.bmp", picture, "BMP", {}),
        ("palette8.bmp", picture.quantize(99), "BMP", {}),
        ("bits1.bmp", picture.convert("1"), "BMP", {}),
        ("rgba32.bmp", rgba, "BMP", {}),
    ]:
        out = io.BytesIO()
        image.save(out, kind, **options)
        files[name] = out.getvalue()
    indices = numpy.arange(12 * 9).reshape(9, 12) % 5
    clear = Image.fromarray(indices.astype(numpy.uint8), mode="P")
    clear.putpalette([250, 0, 0, 0, 250, 0, 0, 0, 250, 9, 9, 9, 200, 200, 0])
    out = io.BytesIO()
    clear.save(out, "GIF", transparency=2)
    files["transparent.gif"] = out.getvalue()
    return files


def decode_goldens(folder, files, expected_folder):
    """What Pillow and convert_to_rgb of transformers make of each file. Lossy pictures are kept as
    PNG, because decoders may differ by a level; the others as checksums."""
    cases = []
    for name, data in sorted(files.items()):
        (folder / name).write_bytes(data)
        picture = ImageOps.exif_transpose(Image.open(io.BytesIO(data)))
        pixels = numpy.asarray(convert_to_rgb(picture, return_numpy=True))
        case = {"file": name, "size": [pixels.shape[1], pixels.shape[0]], "crc32": checksum(pixels)}
        unscaled_key = name.startswith("png_type0") and name.endswith("_trns.png")
        if "depth16" in name or "16_ramp" in name or unscaled_key:
            # Pillow drops the low byte of 16 bits and compares scaled small gray samples with the
            # unscaled tRNS key: the tests compute these.
            del case["crc32"]
        elif name.endswith(".jpg") or name.startswith("lossy"):
            (expected_folder / f"{name}.png").write_bytes(make_png(pixels, 8, 2))
            case["picture"] = f"{name}.png"
        cases.append(case)
    return {"versions": versions(), "cases": cases}


def main():
    """Writes everything below the repository's root."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--repo", default=".", help="root of the repository (default: here)")
    root = pathlib.Path(parser.parse_args().repo)
    data = root / "tests/field/data/image"
    goldens = root / "tests/parity/goldens/image"
    expected = goldens / "decoded"
    for folder in (data, goldens, expected):
        folder.mkdir(parents=True, exist_ok=True)
    random = numpy.random.default_rng(4)
    files = {
        **png_samples(random), **field_pngs(random), **jpeg_samples(), **animated_samples(),
        **other_samples(),
    }  # fmt: skip
    write_json(goldens / "decode.json", decode_goldens(data, files, expected))
    write_json(goldens / "resize.json", resize_goldens())
    write_json(goldens / "recipe.json", recipe_goldens())
    write_json(goldens / "small_tensors.json", small_tensors())
    write_json(goldens / "sizes.json", size_goldens())
    write_json(goldens / "line_chart.json", line_chart_goldens())


if __name__ == "__main__":
    main()
