// A headless Chromium asks axe about pages: node access.mjs MODULES CHROMIUM VISITS.json
//
// A visit: address, width, dark. Prints a JSON list: for each visit its violations, and by how many
// pixels the page is wider than the window.
import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";

const [modules, executablePath, visits] = process.argv.slice(2);
const require = createRequire(path.resolve(modules, "../package.json"));
const { chromium } = require("playwright-core");
const AXE = fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"];
const HEIGHT = 800;

async function visit(browser, { address, width, dark }) {
	const page = await browser.newPage({ viewport: { width, height: HEIGHT }, colorScheme: dark ? "dark" : "light" });
	await page.goto(address, { waitUntil: "load" });
	if (address.endsWith("?print-pdf")) await page.waitForSelector(".pdf-page");
	await page.evaluate(AXE);
	const found = await page.evaluate((values) => globalThis.axe.run(document, { runOnly: { type: "tag", values }, resultTypes: ["violations"] }), RULES);
	const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
	await page.close();
	return { violations: found.violations.map((each) => `${each.id}: ${each.nodes.map((node) => node.target.join(" ")).slice(0, 3).join(", ")}`), overflow };
}

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const results = [];
for (const wanted of JSON.parse(fs.readFileSync(visits))) results.push(await visit(browser, wanted));
await browser.close();
await new Promise((done) => process.stdout.write(JSON.stringify(results), done));
process.exit(0);
