// Examples as pictures, from bytes.
const pixels = examples.pixels && {
  ...examples.pixels,
  examples: bytes(examples.pixels.examples),
  rivals: bytes(examples.pixels.rivals),
  flips: bytes(examples.pixels.flips),
};

function paint(canvas, shade) {
  const [, height, width] = pixels.shape, image = new ImageData(width, height);
  for (let place = 0; place < width * height; place++) image.data.set([...shade(place), 255], 4 * place);
  canvas.width = width;
  canvas.height = height;
  canvas.getContext("2d").putImageData(image, 0, 0);
}

function tones(values, start) {
  const [channels, height, width] = pixels.shape, size = width * height;
  return place => [0, 1, 2].map(tone => values(start + place + (channels === 3 ? tone * size : 0)));
}

const count = () => pixels.shape[0] * pixels.shape[1] * pixels.shape[2];
const paintExample = (canvas, place) => paint(canvas, tones(at => pixels.examples[at], place * count()));
const paintRival = (canvas, place) => paint(canvas, tones(at => pixels.rivals[at], place * count()));

// The flip at a part t of its way; what would leave the range of the pictures is cut.
function paintMoved(canvas, place, t) {
  const scale = t * pixels.sizes[place] / 127 / Math.max(pixels.high - pixels.low, 1e-300) * 255;
  paint(canvas, tones(at => Math.min(255, Math.max(0, pixels.examples[at] + scale * (pixels.flips[at] - 128))), place * count()));
}

// Brighter is orange, darker is blue, unchanged is grey.
function paintChange(canvas, place) {
  const [channels, height, width] = pixels.shape, size = width * height, start = place * count();
  paint(canvas, at => {
    let sum = 0;
    for (let tone = 0; tone < channels; tone++) sum += (pixels.flips[start + at + tone * size] - 128) / 127 / channels;
    return diverging(sum);
  });
}

function diverging(value) {
  const end = value > 0 ? [213, 94, 0] : [0, 114, 178], part = Math.min(1, Math.abs(value));
  return end.map(tone => Math.round(238 + part * (tone - 238)));
}
