"""Paints scenes on the device that trains, so that no picture is ever stored or sent.

`scene_arrays` turns scenes into tensors, `Renderer.sample` draws what is left to chance (fonts, shades, textures,
backgrounds), `Renderer.paint` is a pure function of both. Objects never overlap and keep `scenes.GAP` apart, so every
tile of 4 x 4 pixels belongs to one object at most: each pixel is computed once, whatever the number of objects.
Lengths are in pixels of the 384-pixel canvas; any size that is a multiple of 4 can be painted.
"""
import math
import os

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image, ImageDraw, ImageFont

from scenes import CANVAS, GLYPH_ADVANCE, GLYPH_HEIGHT, MAX_OBJECTS
from vocabulary import CHARS, COLORS, MAX_TEXT, RGB, TEXT

TILE = 4
FONT_FILES = ['DejaVuSans-Bold', 'DejaVuSansMono-Bold', 'DejaVuSerif', 'DejaVuSerif-Bold', 'DejaVuSans']
FONT_FOLDERS = ['/usr/share/fonts/truetype/dejavu']
GRAIN = (4, 8, 16, 32, 64, 128)  # octaves of the photo-like background


def scene_arrays(scenes):
    """Tensors of n scenes: `kind_color` [n, 16, 2] (-1: no object), `chars` [n, 16, 5] and `length` [n, 16] of the
    texts, `geometry` [n, 16, 4] (centre x and y, size, aspect)."""
    n = len(scenes)
    kind_color = np.full((n, MAX_OBJECTS, 2), -1, np.int64)
    chars = np.zeros((n, MAX_OBJECTS, MAX_TEXT), np.int64)
    length = np.zeros((n, MAX_OBJECTS), np.int64)
    geometry = np.tile(np.array([-999, -999, 1, 1], np.float32), (n, MAX_OBJECTS, 1))
    for b, scene in enumerate(scenes):
        for i, thing in enumerate(scene.things):
            kind_color[b, i] = thing.kind, thing.color
            geometry[b, i] = thing.cx, thing.cy, thing.size, thing.aspect
            length[b, i] = len(thing.text)
            for k, char in enumerate(thing.text):
                chars[b, i, k] = CHARS.index(char)
    return tuple(map(torch.from_numpy, (kind_color, chars, length, geometry)))


def find_font(name, size):
    folders = list(FONT_FOLDERS)
    try:
        import matplotlib
        folders.append(os.path.join(matplotlib.get_data_path(), 'fonts', 'ttf'))
    except ImportError:
        pass
    for folder in folders:
        path = os.path.join(folder, name + '.ttf')
        if os.path.exists(path):
            return ImageFont.truetype(path, size)
    return None


def glyph(font, char, width, height):
    """The character in a box of the given size, 0 to 255; one too wide for its advance is squeezed into it."""
    wide = max(width, math.ceil(font.getlength(char)))
    image = Image.new('L', (wide, height))
    ImageDraw.Draw(image).text((wide / 2, height * .78), char, fill=255, font=font, anchor='ms')
    return image.resize((width, height), Image.Resampling.BILINEAR)


def font_atlas(width, height):
    """[fonts, characters, height, width] of coverage: smooth fonts, then the same kind of letters as coarse pixels."""
    atlas = []
    size = height * 26 / GLYPH_HEIGHT
    smooth = [ImageFont.load_default(size)] + [find_font(name, int(size * .87)) for name in FONT_FILES]
    for font in filter(None, smooth):
        atlas.append([np.array(glyph(font, char, width, height)) for char in CHARS])
    coarse_width, coarse_height = 9, 14
    size = coarse_height * 26 / GLYPH_HEIGHT
    coarse = [ImageFont.load_default(size)] + [find_font(name, int(size * .87)) for name in FONT_FILES[:2]]
    for font in filter(None, coarse):
        pixels = [glyph(font, char, coarse_width, coarse_height).point(lambda v: 255 * (v > 110)) for char in CHARS]
        atlas.append([np.array(p.resize((width, height), Image.Resampling.NEAREST)) for p in pixels])
    return np.stack(atlas).astype(np.float32) / 255


class Renderer:
    def __init__(self, device, size=CANVAS, compile=False):
        assert size % TILE == 0
        self.device, self.size = device, size
        scale = 1.25 * size / CANVAS
        self.glyph_width, self.glyph_height = round(GLYPH_ADVANCE * scale), round(GLYPH_HEIGHT * scale)
        atlas = torch.from_numpy(font_atlas(self.glyph_width, self.glyph_height))
        self.fonts = len(atlas)
        self.atlas = atlas.to(device).flatten()
        self.rgb = torch.tensor([RGB[c] for c in COLORS], device=device).float() / 255
        self.paint = torch.compile(self._paint, dynamic=False) if compile else self._paint

    def sample(self, kind_color, g):
        """Everything about n pictures that the scenes leave open, drawn with the generator `g`."""
        n, dev, size = kind_color.shape[0], self.device, self.size

        def uniform(*shape, low=0., high=1.):
            return torch.rand(*shape, device=dev, generator=g) * (high - low) + low

        def normal(*shape):
            return torch.randn(*shape, device=dev, generator=g)

        present, color = kind_color[..., 0] >= 0, kind_color[..., 1]
        p = {'font': torch.randint(0, self.fonts, (n, MAX_OBJECTS), device=dev, generator=g)}
        p['fill'] = (self.rgb[color.clamp(min=0)] + uniform(n, MAX_OBJECTS, 3, low=-.04, high=.04)).clamp(0, 1)
        # Texture of the objects: waves along (wx, wy), or two crossed waves, as a share of the brightness.
        p['texture'] = torch.where(uniform(n, MAX_OBJECTS) < .35, uniform(n, MAX_OBJECTS, high=.16), 0.)
        angle, step = uniform(n, MAX_OBJECTS, high=math.pi), uniform(n, MAX_OBJECTS, low=.45, high=1.3)
        p['wave'] = torch.stack([angle.cos() * step, angle.sin() * step, (uniform(n, MAX_OBJECTS) < .5).float()], -1)
        # Backgrounds: 0 flat, 1 gradient with noise, 2 clutter, 3 like a photo, 4 a pattern.
        kind = torch.multinomial(torch.tensor([.2, .2, .25, .22, .13], device=dev), n, True, generator=g)
        p['kind'] = kind.view(n, 1, 1, 1)
        is_text = kind_color[..., 0] == TEXT
        p['base'] = self.base_colors(n, uniform, color, present, p['fill'], is_text)
        calm = torch.where(is_text.any(1), .6, 1.).view(n, 1, 1, 1)  # texts must stay legible
        p['slope_x'], p['slope_y'] = uniform(n, 3, 1, 1, low=-.08, high=.08), uniform(n, 3, 1, 1, low=-.08, high=.08)
        p['noise'] = normal(n, 3, size, size) * uniform(n, 1, 1, 1, high=.035)
        p['blobs'] = normal(n, 3, 7, 7) * .05 * calm
        p['tiles'] = normal(n, 1, 24, 24) * uniform(n, 1, 1, 1, high=.05) * calm
        rough = uniform(n, 1, 1, 1, low=.45, high=.85)
        for i, octave in enumerate(GRAIN):
            light, tint = normal(n, 1, octave, octave), normal(n, 3, octave, octave)
            p[f'grain{i}'] = (light * .07 + tint * .025) * rough ** i * calm
        p['horizon'] = torch.cat([uniform(n, 1, 1, 1, low=-.8, high=.8), uniform(n, 1, 1, 1, low=-.1, high=.1)], 1)
        angle, step = uniform(n, 1, 1, high=math.pi), uniform(n, 1, 1, low=.08, high=.7)
        p['pattern'] = torch.stack([angle.cos() * step, angle.sin() * step, uniform(n, 1, 1, low=.02, high=.07) * calm[:, 0],
                                    torch.randint(0, 3, (n, 1, 1), device=dev, generator=g).float()], 1)
        return p

    def base_colors(self, n, uniform, color, present, fill, is_text):
        """[n, 3, 1, 1] main colours of the backgrounds: mostly of middle brightness, light or dark only without white or
        black objects, and of five drawn for a picture the one that its texts stand out from most."""
        tries = 5
        has = lambda name: ((color == COLORS.index(name)) & present).any(1).view(n, 1, 1)
        light = uniform(n, tries, 1, low=.38, high=.66)
        x = uniform(n, 1, 1)
        light = torch.where((x < .3) & ~has('white'), uniform(n, tries, 1, low=.82, high=1.), light)
        light = torch.where((x > .85) & ~has('black'), uniform(n, tries, 1, low=0., high=.15), light)
        base = light + uniform(n, tries, 3, low=-.08, high=.08)
        luma = torch.tensor([.299, .587, .114], device=self.device)
        apart = base[:, :, None] - fill[:, None]  # [n, tries, 16, 3]
        contrast = apart.abs().sum(-1) + 3 * (apart * luma).sum(-1).abs()
        contrast = torch.where(is_text[:, None], contrast, 9.).amin(-1)
        best = contrast.argmax(1)[:, None, None].expand(n, 1, 3)
        return base.gather(1, best).view(n, 3, 1, 1)

    def background(self, p):
        """[n, 3, size, size]"""
        size, kind = self.size, p['kind']
        v = torch.linspace(-1, 1, size, device=self.device)
        sloped = v * p['slope_x'] + v[:, None] * p['slope_y']
        clutter = (F.interpolate(p['blobs'], (size, size), mode='bilinear')
                   + F.interpolate(p['tiles'], (size, size), mode='nearest'))
        photo = sum(F.interpolate(p[f'grain{i}'], (size, size), mode='bilinear') for i in range(len(GRAIN)))
        edge = torch.sigmoid((v[:, None] - p['horizon'][:, :1]) * 40)
        photo = photo * (.4 + .6 * edge) + p['horizon'][:, 1:] * (2 * edge - 1) - .06 * (v ** 2 + v[:, None] ** 2)
        u = (torch.arange(size, device=self.device) + .5) * (CANVAS / size)
        wx, wy, strength, form = (t[:, None] for t in p['pattern'].unbind(1))
        along, across = u * wx + u[:, None] * wy, u * wy - u[:, None] * wx
        stripes = torch.sin(along)
        pattern = torch.where(form == 0, stripes, torch.where(form == 1, torch.sign(stripes * torch.sin(across)),
                                                              torch.where(stripes * torch.sin(across) > .5, 1., -.4)))
        out = p['base'] + (kind > 0) * (sloped + p['noise']) + (kind == 2) * clutter + (kind == 3) * photo
        return out + (kind == 4) * pattern * strength

    def _paint(self, kind_color, chars, length, geometry, p):
        """[n, 3, size, size] in 0..1."""
        n, size, tiles = kind_color.shape[0], self.size, self.size // TILE
        unit = CANVAS / size  # canvas pixels a painted pixel
        kind = kind_color[..., 0]
        is_text = kind == TEXT
        cx, cy, extent, aspect = geometry.unbind(-1)
        half_width = torch.where(is_text, extent * length * (GLYPH_ADVANCE / 2), extent * aspect)
        half_height = torch.where(is_text, extent * (GLYPH_HEIGHT / 2), extent / aspect)
        middle = (torch.arange(tiles, device=kind.device) + .5) * (TILE * unit)
        out_x = (middle - cx[..., None]).abs() - half_width[..., None]    # [n, 16, tiles]
        out_y = (middle - cy[..., None]).abs() - half_height[..., None]
        owner = torch.maximum(out_x[:, :, None], out_y[..., None]).argmin(1).view(n, -1)  # [n, tiles * tiles]

        def of_owner(values):
            """[n, 16] -> [n, tiles, 1, tiles, 1], to meet pixels [n, tiles, 4, tiles, 4]."""
            return values.gather(1, owner).view(n, tiles, 1, tiles, 1)

        grid = ((torch.arange(size, device=kind.device) + .5) * unit).view(tiles, TILE)
        dx, dy = grid - of_owner(cx), grid[:, :, None, None] - of_owner(cy)
        who, scale = of_owner(kind), of_owner(extent)
        shape = (.5 - self.distance(who, dx, dy, scale, of_owner(aspect)) / unit).clamp(0, 1)
        ink = self.ink(chars, dx, dy, scale, of_owner(length), of_owner(p['font']), owner)
        cover = torch.where(who == TEXT, ink, torch.where(who >= 0, shape, 0.)).view(n, 1, size, size)
        wave_x, wave_y, crossed = (of_owner(t) for t in p['wave'].unbind(-1))
        wave = torch.sin(dx * wave_x + dy * wave_y)
        wave = torch.where(crossed > 0, wave * torch.sin(dx * wave_y - dy * wave_x), wave)
        shade = (1 + of_owner(p['texture']) * wave * (who < TEXT)).view(n, 1, size, size)
        fill = torch.stack([of_owner(c).expand(n, tiles, TILE, tiles, TILE).reshape(n, size, size)
                            for c in p['fill'].unbind(-1)], 1)
        return (self.background(p).clamp(0, 1) * (1 - cover) + (fill * shade).clamp(0, 1) * cover).clamp(0, 1)

    @staticmethod
    def distance(kind, dx, dy, radius, aspect):
        """Signed distance (about) to the outline of the shape at hand, in canvas pixels; negative inside."""
        x, y = dx / aspect, dy * aspect
        ax, ay, r = x.abs(), y.abs(), torch.sqrt(x * x + y * y + 1e-6)
        turn, sector = torch.atan2(ax, -y), 2 * math.pi / 5
        fold = (turn - sector * torch.round(turn / sector)).abs()
        others = (
            torch.maximum(ax, ay) - radius * .86,                                                          # square
            torch.maximum((ax - .56 * (y + .9 * radius)) * .87, y - radius * .75).maximum(-y - radius * .9),  # triangle
            (ax * 1.2 + ay - radius * 1.1) * .64,                                                          # diamond
            (r - radius * .78).abs() - radius * .19,                                                       # ring
            torch.minimum(torch.maximum(ax - radius * .27, ay - radius),
                          torch.maximum(ay - radius * .27, ax - radius)),                                  # cross
            (r * torch.cos(fold) - radius) * .3505 + r * torch.sin(fold) * .9366,                          # star
            torch.maximum(ax - radius, ay - radius * .33),                                                 # bar
        )
        d = r - radius                                                                                     # circle
        for i, other in enumerate(others, 1):
            d = torch.where(kind == i, other, d)
        return d

    def ink(self, chars, dx, dy, scale, length, font, owner):
        """Coverage by a text: the atlas read bilinearly."""
        n, width, height = dx.shape[0], self.glyph_width, self.glyph_height
        x, y = dx / scale + length * (GLYPH_ADVANCE / 2), dy / scale + GLYPH_HEIGHT / 2
        inside = (x >= 0) & (x < length * GLYPH_ADVANCE) & (y >= 0) & (y < GLYPH_HEIGHT)
        index = torch.floor(x / GLYPH_ADVANCE).clamp(0, MAX_TEXT - 1).long()
        slot = owner.view(n, *font.shape[1:]) * MAX_TEXT + index
        char = chars.view(n, -1).gather(1, slot.reshape(n, -1)).view(slot.shape) + font * len(CHARS)
        fx = (x - index * GLYPH_ADVANCE) * (width / GLYPH_ADVANCE) - .5
        fy = y * (height / GLYPH_HEIGHT) - .5
        left, top, total = torch.floor(fx), torch.floor(fy), 0
        for oy in (0, 1):
            for ox in (0, 1):
                weight = (1 - (fx - left - ox).abs()) * (1 - (fy - top - oy).abs())
                row = (char * height + (top + oy).clamp(0, height - 1).long()) * width
                total = total + weight * self.atlas[row + (left + ox).clamp(0, width - 1).long()]
        return torch.where(inside, total, 0.)


def character_patches(kind_color, length, geometry, patch):
    """Index of the patch that holds the centre of each object [n, 16] and of each character [n, 16, 5]."""
    side = CANVAS // patch
    cx, cy, scale, _ = geometry.unbind(-1)
    row = (cy / patch).long().clamp(0, side - 1) * side
    i = torch.arange(MAX_TEXT, device=length.device)
    x = cx[..., None] + (i - (length[..., None] - 1) / 2) * (GLYPH_ADVANCE * scale)[..., None]
    return (row + (cx / patch).long().clamp(0, side - 1),
            row[..., None] + (x / patch).long().clamp(0, side - 1))
