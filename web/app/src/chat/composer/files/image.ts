// Pictures in the size and format that models accept.

/** Longest side of a picture, in pixels. Models use at most 1,568 to 2,048; photos have 4,000. */
export const IMAGE_SIDE_PX_MAX = 2_048;
const JPEG_QUALITY = 0.9;
/** Other formats are converted: no model accepts BMP or AVIF. */
const TAKEN = /^image\/(png|jpeg|webp|gif)$/;

/** The picture, scaled down if it is too large. If the browser cannot decode it, it is sent as it is. */
export async function shrunk(file: File): Promise<Blob> {
  // Conversion would stop the animation.
  if (file.type === "image/gif") return file;
  const bitmap = await createImageBitmap(file).catch(() => undefined);
  if (bitmap === undefined) return file;
  try {
    const size = fitting(bitmap.width, bitmap.height);
    if (TAKEN.test(file.type) && size.width === bitmap.width) return file;
    const canvas = document.createElement("canvas");
    Object.assign(canvas, size);
    const context = canvas.getContext("2d");
    if (context === null) return file;
    context.imageSmoothingQuality = "high";
    context.drawImage(bitmap, 0, 0, size.width, size.height);
    const type = file.type === "image/jpeg" ? "image/jpeg" : "image/png";
    const drawn = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve, type, JPEG_QUALITY));
    return drawn ?? file;
  } finally {
    bitmap.close();
  }
}

/** The size with the same aspect ratio and a limited longest side. */
export function fitting(width: number, height: number): { width: number; height: number } {
  const scale = Math.min(1, IMAGE_SIDE_PX_MAX / Math.max(width, height));
  const side = (length: number): number => Math.max(1, Math.round(length * scale));
  return { width: side(width), height: side(height) };
}
