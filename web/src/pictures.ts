export interface Picture {
  id: number;
  name: string;
  /** With all of its bytes: what is sent is what is shown. */
  uri: string;
}

export const pictureTypes = ['image/jpeg', 'image/png', 'image/webp', 'image/gif', 'image/bmp'];

let lastId = 0;

export async function readPicture(file: File): Promise<Picture> {
  if (!pictureTypes.includes(file.type)) {
    throw new Error(`${file.name} is no picture that the server reads: JPEG, PNG, WebP, GIF or BMP.`);
  }
  const uri = await new Promise<string>((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result as string);
    reader.onerror = () => reject(new Error(`${file.name} cannot be read.`));
    reader.readAsDataURL(file);
  });
  return { id: ++lastId, name: file.name, uri };
}
