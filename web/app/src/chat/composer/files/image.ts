// Pictures as models take them: no larger than they look at.

/** Longest side of a picture, in pixels. Models look at no more than 1,568 to 2,048; a photo has 4,000. */
export const IMAGE_SIDE_PX_MAX = 2_048;
const JPEG_QUALITY = 0.9;
/** Others are drawn anew: no model takes BMP or AVIF. */
const TAKEN = /^image\/(png|jpeg|webp|gif)$/;

/** The picture, smaller if it is too large. One that this browser cannot draw goes as it is; the server or the model says so. */
export async function shrunk(file: File): Promise<Blob> {
  // It would no longer move.
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

/** The same shape with sides that are not too long. */
export function fitting(width: number, height: number): { width: number; height: number } {
  const scale = Math.min(1, IMAGE_SIDE_PX_MAX / Math.max(width, height));
  const side = (length: number): number => Math.max(1, Math.round(length * scale));
  return { width: side(width), height: side(height) };
}
