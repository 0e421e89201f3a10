// The ground; for a digging machine a construction site, whose centre is left open for Earth.

import * as THREE from "three";
import { HALF } from "./earth";

export interface World { objects: THREE.Object3D[]; soil: THREE.MeshStandardMaterial }

export function world(size: number, height: number, site: boolean): World {
  const soil = new THREE.MeshStandardMaterial({ map: painted(site), roughness: 1 }), far = 40 * size, shape = new THREE.Shape();
  soil.map!.repeat.setScalar(1 / (site ? 15 : 2 * size)); // side of the texture, m
  shape.absarc(0, 0, far, 0, 2 * Math.PI, false);
  if (site) shape.holes.push(new THREE.Path([[-HALF, -HALF], [-HALF, HALF], [HALF, HALF], [HALF, -HALF]].map(([x, y]) => new THREE.Vector2(x, y))));
  const ground = new THREE.Mesh(new THREE.ShapeGeometry(shape, 64), soil);
  ground.rotation.x = -Math.PI / 2;
  ground.position.y = height;
  ground.receiveShadow = true;
  return { objects: site ? [ground, ...props(height)] : [ground, ...rings(size, height)], soil };
}

// They make distances visible.
function rings(size: number, height: number): THREE.Object3D[] {
  return [0.5, 1, 1.5].map((r) => {
    const ring = new THREE.Mesh(new THREE.RingGeometry((r - 0.003) * size, (r + 0.003) * size, 128), new THREE.MeshBasicMaterial({ color: 0xffffff, transparent: true, opacity: 0.4 }));
    ring.rotation.x = -Math.PI / 2;
    ring.position.y = height + 0.002 * size;
    return ring;
  });
}

function props(height: number): THREE.Object3D[] {
  const out: THREE.Object3D[] = [];
  const dirt = new THREE.MeshStandardMaterial({ color: 0x8d7350, roughness: 1, flatShading: true });
  for (const [x, z, r] of [[7.5, -8, 1.7], [10, -6.2, 1.1], [-9, -9, 2.2], [12.5, 6, 1.4]] as const) {
    const geometry = new THREE.ConeGeometry(1.6 * r, 0.95 * r, 22, 5), p = geometry.attributes.position!;
    // Random, but equal for coincident vertices, so that the cone has no gaps.
    const rough = (x: number, y: number, z: number, k: number) => Math.sin(17 * x + 29 * y + 41 * z + k + r) * 0.1 * r;
    for (let i = 0; i < p.count; i++) {
      const [x, y, z] = [p.getX(i), p.getY(i), p.getZ(i)];
      p.setXYZ(i, x + rough(x, y, z, 0), Math.min(0.36 * r, y) + 0.6 * rough(x, y, z, 2), z + rough(x, y, z, 4));
    }
    geometry.computeVertexNormals();
    const mound = new THREE.Mesh(geometry, dirt);
    mound.position.set(x, height + 0.42 * r, z);
    mound.castShadow = mound.receiveShadow = true;
    out.push(mound);
  }
  const orange = new THREE.MeshStandardMaterial({ color: 0xe8590c, roughness: 0.7 }), white = new THREE.MeshStandardMaterial({ color: 0xf8f9fa, roughness: 0.7 });
  for (let k = 0; k < 7; k++) {
    const a = -0.9 + 0.3 * k, x = 9.4 * Math.cos(a), z = -9.4 * Math.sin(a);
    const cone = new THREE.Mesh(new THREE.ConeGeometry(0.16, 0.6, 20), orange), band = new THREE.Mesh(new THREE.CylinderGeometry(0.078, 0.112, 0.13, 20), white);
    cone.position.set(x, height + 0.3, z);
    band.position.set(x, height + 0.3, z);
    cone.castShadow = true;
    out.push(cone, band);
  }
  return out;
}

function seeded(seed: number): () => number {
  return () => ((seed = (seed * 16807) % 2147483647) / 2147483647);
}

// Sand, or a floor with a grid: painted on a canvas, so that nothing has to be fetched.
function painted(site: boolean): THREE.CanvasTexture {
  const canvas = document.createElement("canvas"), n = 512, random = seeded(3);
  canvas.width = canvas.height = n;
  const c = canvas.getContext("2d")!;
  c.fillStyle = site ? "#c9b48c" : "#e9ecef";
  c.fillRect(0, 0, n, n);
  if (site) {
    for (let i = 0; i < 5200; i++) {
      const light = random() > 0.5, r = 0.6 + 2.4 * random() ** 3;
      c.fillStyle = light ? `rgba(232,214,176,${0.15 + 0.35 * random()})` : `rgba(120,96,62,${0.08 + 0.25 * random()})`;
      c.beginPath(); c.arc(n * random(), n * random(), r, 0, 7); c.fill();
    }
  } else {
    c.strokeStyle = "#cfd5db"; c.lineWidth = 3;
    c.strokeRect(0, 0, n, n);
  }
  const t = new THREE.CanvasTexture(canvas);
  t.wrapS = t.wrapT = THREE.RepeatWrapping;
  t.colorSpace = THREE.SRGBColorSpace;
  t.anisotropy = 8;
  return t;
}
