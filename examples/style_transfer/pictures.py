# Draws the pictures of the example, writes PNG files and compares pictures. Needs only NumPy.
"""Draws the pictures of the style-transfer example and turns arrays into PNG files.

pictures.py content PICTURE.npy                          the picture that is to be painted, 1 x 3 x height x width in 0..1
pictures.py join TITLE.png FILE.npy FILE.npz:ARRAY ...   pictures side by side, as one PNG file
pictures.py compare FILE.npz:ARRAY FILE.npz:ARRAY        how far two pictures are apart, in steps of 8-bit color
"""

from __future__ import annotations

import pathlib
import struct
import sys
import zlib

import numpy as np

HEIGHT, WIDTH = 192, 256


def smooth_noise(shape: tuple[int, int], scale: float, random: np.random.Generator) -> np.ndarray:
    """Returns a sum of waves in random directions with a length of about `scale` pixels; mean 0, deviation 1."""
    y, x = np.mgrid[: shape[0], : shape[1]]
    total = np.zeros(shape)
    for _ in range(12):
        angle, phase = random.uniform(0, 2 * np.pi, 2)
        rate = 2 * np.pi / (scale * random.uniform(0.7, 1.6))
        total += np.sin(rate * (np.cos(angle) * x + np.sin(angle) * y) + phase)
    return total / total.std()


def blend(picture: np.ndarray, mask: np.ndarray, color: tuple[float, float, float]) -> None:
    picture += mask[..., None] * (np.array(color) - picture)


def draw_content(height: int = HEIGHT, width: int = WIDTH, seed: int = 5) -> np.ndarray:
    """Returns a picture of a lake before mountains, with a house and trees: height x width x 3 in 0..1. The seed
    determines the scene."""
    random = np.random.default_rng(seed)
    h, w = 2 * height, 2 * width  # drawn at twice the size, then averaged, for smooth edges
    y, x = np.mgrid[:h, :w]
    unit_y, unit_x = y / h, x / w
    picture = (1 - unit_y)[..., None] * np.array([0.25, 0.50, 0.85]) + unit_y[..., None] * np.array([1.0, 0.85, 0.65])

    sun_x, sun_y = random.uniform(0.15, 0.85), random.uniform(0.12, 0.3)
    distance = np.hypot((unit_x - sun_x) * w / h, unit_y - sun_y)
    blend(picture, 0.6 * np.exp(-((distance / 0.16) ** 2)), (1.0, 0.95, 0.7))
    blend(picture, distance < 0.07, (1.0, 0.98, 0.85))
    clouds = smooth_noise((h, w // 3), h / 5, random).repeat(3, axis=1)
    clouds = np.pad(clouds, ((0, 0), (0, w - clouds.shape[1])), mode="edge")
    blend(picture, np.clip(clouds - 0.9, 0, 0.6) * (unit_y < 0.45), (1.0, 1.0, 1.0))

    shore = random.uniform(0.62, 0.68)
    for base, color in [(0.36, (0.45, 0.50, 0.70)), (0.47, (0.30, 0.38, 0.52)), (0.57, (0.18, 0.32, 0.25))]:
        ridge = base + 0.06 * smooth_noise((1, w), w / 3, random)[0] + 0.012 * smooth_noise((1, w), w / 17, random)[0]
        land = (unit_y > ridge) & (unit_y < shore)
        blend(picture, land, color)
        snow = land & (unit_y < ridge + 0.05) & (unit_y < base + 0.01 * smooth_noise((h, w), 30, random))
        blend(picture, 0.8 * snow * (base < 0.4), (0.95, 0.95, 1.0))

    water = unit_y >= shore
    mirror = np.clip((2 * shore - unit_y) * h, 0, h - 1).astype(int)
    ripple = (3 * np.sin(y * 0.9 + 2 * np.sin(x * 0.03))).astype(int)
    reflected = picture[mirror, np.clip(x + ripple, 0, w - 1)]
    picture = np.where(water[..., None], 0.65 * reflected + 0.35 * np.array([0.15, 0.30, 0.45]), picture)

    meadow = unit_y > 0.86 + 0.025 * smooth_noise((1, w), w / 2, random)[0]
    blend(picture, meadow, (0.30, 0.48, 0.16))
    house = random.uniform(0.2, 0.7)
    roof_x = np.abs(unit_x - house)
    blend(picture, (roof_x < 0.075) & (unit_y > 0.66) & (unit_y < 0.9), (0.93, 0.88, 0.78))
    blend(picture, (roof_x < (unit_y - 0.52) * 0.68) & (unit_y > 0.52) & (unit_y < 0.66), (0.70, 0.20, 0.13))
    blend(picture, (np.abs(roof_x - 0.042) < 0.016) & (np.abs(unit_y - 0.735) < 0.03), (0.20, 0.25, 0.38))
    blend(picture, (roof_x < 0.016) & (unit_y > 0.80) & (unit_y < 0.9), (0.38, 0.22, 0.12))
    for _ in range(4):
        trunk, top, size = random.uniform(0.03, 0.97), random.uniform(0.45, 0.62), random.uniform(0.03, 0.05)
        if abs(trunk - house) < 0.13:
            continue
        blend(picture, (np.abs(unit_x - trunk) < 0.008) & (unit_y > top) & (unit_y < 0.93), (0.30, 0.18, 0.10))
        layers = size * (0.25 + ((unit_y - top) * 9) % 1) * (0.4 + 3 * (unit_y - top))
        blend(picture, (np.abs(unit_x - trunk) < layers) & (unit_y > top) & (unit_y < 0.88), (0.08, 0.25, 0.14))
    picture += 0.02 * smooth_noise((h, w), 9, random)[..., None]
    return np.clip(picture.reshape(height, 2, width, 2, 3).mean((1, 3)), 0, 1).astype(np.float32)


def pixels(picture: np.ndarray) -> np.ndarray:
    """Converts 1 x 3 x height x width in 0..1 to height x width x 3 bytes."""
    return np.round(np.clip(picture[0].astype(np.float32), 0, 1).transpose(1, 2, 0) * 255).astype(np.uint8)


def write_png(path: pathlib.Path, image: np.ndarray) -> None:
    """Writes a PNG file with each row as its difference from the previous row, which compresses better than the
    pixels."""
    above = np.vstack([np.zeros_like(image[:1]), image[:-1]])
    rows = (image - above).reshape(len(image), -1)
    data = b"".join(b"\2" + row.tobytes() for row in rows)

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", image.shape[1], image.shape[0], 8, 2, 0, 0, 0)
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(data, 9)) + chunk(b"IEND", b"")
    )


def load(source: str) -> np.ndarray:
    path, _, array = source.partition(".npz:")
    return np.load(path + ".npz")[array] if array else np.load(path)


def main() -> None:
    match sys.argv[1:]:
        case ["content", f32, f16]:
            picture = draw_content().transpose(2, 0, 1)[None]
            np.save(f32, picture)
            np.save(f16, picture.astype(np.float16))
        case ["join" | "small" as how, path, *sources]:
            gap = np.full((HEIGHT, 6, 3), 255, np.uint8)
            panels = [panel for source in sources for panel in (gap, pixels(load(source)))]
            joined = np.hstack(panels[1:])
            write_png(pathlib.Path(path), joined if how == "join" else joined & 0xF8 | 4)
        case ["compare", left, right]:
            steps = np.abs(pixels(load(left)).astype(int) - pixels(load(right)))
            print(f"largest difference {steps.max()} of 255, {np.mean(steps > 0):.2%} of the color values differ")
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
