//! Photographs of a screen as a camera takes them, crooked and blurred, for tests.

use image::{GrayImage, Luma, imageops};

/// Conditions of a photograph.
#[derive(Clone, Copy, Debug)]
pub struct Shot {
    /// Rotation of the camera in degrees.
    pub turned: f32,
    /// Amount by which the right side is nearer than the left.
    pub slanted: f32,
    /// Pixels of the photograph per pixel of the screen.
    pub scale: f32,
    /// Blur: standard deviation in pixels of the screen.
    pub blur: f32,
}

/// Exact picture of the screen.
pub const STRAIGHT: Shot = Shot { turned: 0.0, slanted: 0.0, scale: 1.0, blur: 0.0 };

/// Photographs a screen in a dark room, with noise and a light side.
pub fn photograph(screen: &GrayImage, shot: Shot) -> GrayImage {
    let (width, height) = (screen.width() as f32, screen.height() as f32);
    let side = (width.hypot(height) * shot.scale * 1.2) as u32;
    let (sin, cos) = shot.turned.to_radians().sin_cos();
    let at = |x: u32, y: u32| {
        let (x, y) = (x as f32 - side as f32 / 2.0, y as f32 - side as f32 / 2.0);
        let (x, y) = ((x * cos + y * sin) / shot.scale, (y * cos - x * sin) / shot.scale);
        let depth = 1.0 + shot.slanted * x / width;
        (x / depth + width / 2.0, y / depth + height / 2.0)
    };
    let taken = GrayImage::from_fn(side, side, |x, y| {
        let (from_x, from_y) = at(x, y);
        let inside =
            from_x >= 0.0 && from_y >= 0.0 && from_x < width - 1.0 && from_y < height - 1.0;
        let level = if inside {
            imageops::interpolate_bilinear(screen, from_x, from_y).map_or(0, |pixel| pixel.0[0])
        } else {
            0
        };
        let noise = (x.wrapping_mul(7919) ^ y.wrapping_mul(104_729)) % 13;
        let light = 20.0 + 40.0 * x as f32 / side as f32;
        Luma([(f32::from(level) * 0.7 + light) as u8 + noise as u8])
    });
    if shot.blur > 0.0 { imageops::blur(&taken, shot.blur * shot.scale) } else { taken }
}
